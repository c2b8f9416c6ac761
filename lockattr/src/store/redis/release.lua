-- Gives locks back, where the claim still has them.
--
-- KEYS[i]  a lock
-- ARGV[i]  the claim's value
--
-- Returns 1 for each lock that was the claim's, else 0.

local answers = {}
for i, key in ipairs(KEYS) do
  -- As in acquire.lua: not a string is not ours, any other error is no answer.
  local held = redis.pcall('GET', key)
  if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  end
  if held == ARGV[i] then
    answers[i] = redis.call('DEL', key)
  else
    answers[i] = 0
  end
end
return answers
