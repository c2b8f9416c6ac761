-- Takes a lock from one holder, and grants it to the next waiters.
--
-- KEYS[1]  the fencing counter
-- KEYS[2]  the lock
-- KEYS[3]  its queue
-- ARGV[1]  the id of the holder
--
-- Returns 1 if that holder had it, 0 if not, or -1 if the key is not a lock, and is unchanged.

-- As `HolderId::of` in Rust.
local function id_of(value)
  local ours = is_ours(value)
  local seen = ours and value or shown(value)
  local digest = redis.sha1hex(ours and string.sub(value, 1, 32) or seen)
  return string.sub(digest, 1, 16) .. (string.sub(seen, -7) == ' done=1' and '-done' or '')
end

local lock = KEYS[2]
local kind, first = held_by(lock)
if kind == '?' then
  return -1
end
local values = { first }
if kind == 's' or kind == 'p' then
  values = redis.call('ZRANGE', lock, string.format('(%.0f', millis()), '+inf', 'BYSCORE')
end
local had = 0
for _, value in ipairs(values) do
  if id_of(value) == ARGV[1] then
    had = 1
    if kind == 'x' then
      redis.call('DEL', lock)
    else
      redis.call('ZREM', lock, value)
      end_with_the_last(lock)
    end
  end
end
if had == 1 then
  touched[lock] = true
  -- As in release.lua: the lock stays free even if the next claim cannot be served.
  pcall(serve, { lock }, KEYS[1])
  pcall(secure_touched)
end
return had
