-- Takes a lock from all its holders, and grants it to the next waiters.
--
-- KEYS[1]  the fencing counter
-- KEYS[2]  the lock
-- KEYS[3]  its queue
--
-- Returns 1 if a claim held it, 0 if none did, or -1 if the key is not a lock, and is unchanged.

local lock = KEYS[2]
local kind = held_by(lock)
if kind == '?' then
  return -1
end
if kind then
  redis.call('DEL', lock)
end
touched[lock] = true
-- As in release.lua: the lock stays free even if the next claim cannot be served.
pcall(serve, { lock }, KEYS[1])
pcall(secure_touched)
return kind and 1 or 0
