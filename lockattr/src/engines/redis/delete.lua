-- Gives back locks that their claims have alone and that no process waits for: the compare-and-delete of a server that
-- has none of its own.
--
-- KEYS[i]  a lock
-- ARGV[i]  the value of its claim
--
-- Returns for each lock 1 if it was deleted, or 0 if it has another value: release.lua knows what to do then. An
-- error is about its lock alone. One lock has its answer without a list.

local deleted = {}
for i, lock in ipairs(KEYS) do
  -- pcall, because it may not be a string.
  if redis.pcall('GET', lock) == ARGV[i] then
    deleted[i] = redis.pcall('DEL', lock)
  else
    deleted[i] = 0
  end
end
return #KEYS == 1 and deleted[1] or deleted
