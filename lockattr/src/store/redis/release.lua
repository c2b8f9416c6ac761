-- Gives locks back, where the claim still has them.
--
-- KEYS[i]  a lock
-- ARGV[i]  the claim's value
--
-- Returns 1 for each lock that was the claim's, else 0.

local answers = {}
for i, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == ARGV[i] then
    answers[i] = redis.call('DEL', key)
  else
    answers[i] = 0
  end
end
return answers
