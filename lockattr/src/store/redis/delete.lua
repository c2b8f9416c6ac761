-- Gives back a lock that its claim has alone and that nobody waits for: the compare-and-delete of a server that
-- has none of its own.
--
-- KEYS[1]  the lock
-- ARGV[1]  the claim's value
--
-- Returns 1 if the lock was deleted, 0 if it has another value: release.lua knows what to do then.

-- pcall, because it may not be a string.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
