-- Who has a lock; of several, one of them.
--
-- KEYS[1]  the lock
--
-- Returns { a holder's value, milliseconds until its lease ends or negative }, or nothing if nobody
-- has it.

local kind, held = held_by(KEYS[1])
if kind == 's' or kind == 'p' then
  return { held, redis.call('ZSCORE', KEYS[1], held) - millis() }
elseif kind then
  return { held, redis.call('PTTL', KEYS[1]) }
end
return false
