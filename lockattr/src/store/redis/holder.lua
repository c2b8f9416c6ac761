-- Who has a lock.
--
-- KEYS[1]  the lock
--
-- Returns { the lock's value, its PTTL }, or nothing if nobody has it.

-- pcall, because another program may keep something else than a string under this name.
local held = redis.pcall('GET', KEYS[1])
if held then
  return { type(held) == 'string' and held or '', redis.call('PTTL', KEYS[1]) }
end
return false
