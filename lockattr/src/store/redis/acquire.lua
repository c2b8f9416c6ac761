-- Takes a lock that is free, or takes again the one that this claim has already.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fencing counter, one for the whole server
-- ARGV[1]  the claim's value: owner token and holder label
-- ARGV[2]  TTL in milliseconds
--
-- Returns the number of this acquisition, or { the lock's value, its PTTL } if another has it.

-- pcall, because another program may keep something else than a string under this name. Any other
-- error is no answer, and is passed on.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if held and held ~= ARGV[1] then
  return { type(held) == 'string' and held or '', redis.call('PTTL', KEYS[1]) }
end

-- Microseconds since 2024-01-01 or one more than last time: a server that forgot everything still
-- counts on, and a clock that goes back does not take the counter along. Below 2^53 until 2309, so
-- exact as a double; '%.0f', because Lua prints large numbers with an exponent.
local time = redis.call('TIME')
local counter = (time[1] - 1704067200) * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
if counter <= last then
  counter = last + 1
end

-- The counter first: if the server refuses writes, nothing is locked.
redis.call('SET', KEYS[2], string.format('%.0f', counter))
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return counter
