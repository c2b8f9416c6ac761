-- Releases exclusive locks that no process waits for: the compare-and-delete for servers without
-- one of their own.
--
-- KEYS[i]  a lock
-- ARGV[i]  the value of its claim
--
-- Returns for each lock 1 if it was deleted, or 0 if it has another value: then release.lua
-- decides. An error concerns its lock alone. For a single lock the reply is not a list.

local deleted = {}
for i, lock in ipairs(KEYS) do
  -- pcall, because the key may not be a string.
  if redis.pcall('GET', lock) == ARGV[i] then
    deleted[i] = redis.pcall('DEL', lock)
  else
    deleted[i] = 0
  end
end
return #KEYS == 1 and deleted[1] or deleted
