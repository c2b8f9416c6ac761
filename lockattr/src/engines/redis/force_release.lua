-- Takes a lock from all who have it, and hands it to those whose turn it is.
--
-- KEYS[1]  the fencing counter
-- KEYS[2]  the lock
-- KEYS[3]  its queue
--
-- Returns 1 if anybody had it, 0 if no process had, or -1 if what is there is no lock, and is left alone.

local lock = KEYS[2]
local kind = held_by(lock)
if kind == '?' then
  return -1
end
if kind then
  redis.call('DEL', lock)
end
touched[lock] = true
-- As in release.lua: it stays free if the next claim cannot be served.
pcall(serve, { lock }, KEYS[1])
pcall(secure_touched)
return kind and 1 or 0
