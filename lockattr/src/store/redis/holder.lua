-- Who has a lock.
--
-- KEYS[1]  the lock
--
-- Returns { the lock's value, its PTTL }, or nothing if nobody has it.

-- As in acquire.lua: not a string is another's, any other error is no answer.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if held then
  return { type(held) == 'string' and held or '', redis.call('PTTL', KEYS[1]) }
end
return false
