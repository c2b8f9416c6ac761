-- Makes leases run on, each for its own TTL, where the claim still has the lock.
--
-- KEYS[i]       a lock
-- ARGV[2i - 1]  the claim's value
-- ARGV[2i]      TTL in milliseconds
--
-- Returns 1 for each lock that is still the claim's, else 0.

local answers = {}
for i, key in ipairs(KEYS) do
  local ttl = ARGV[2 * i]
  -- As in acquire.lua: not a string is not ours, any other error is no answer.
  local held = redis.pcall('GET', key)
  if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  end
  if held == ARGV[2 * i - 1] then
    -- Never shorter than it is: a renewal may overtake a longer one that `extend` sent.
    if redis.call('PTTL', key) < tonumber(ttl) then
      redis.call('PEXPIRE', key, ttl)
    end
    answers[i] = 1
  else
    answers[i] = 0
  end
end
return answers
