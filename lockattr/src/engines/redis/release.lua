-- Releases locks that the claims still hold, removes the claims from the queues, and hands off what
-- became free.
--
-- KEYS[1]       the fencing counter
-- KEYS[2 …]     for each claim, its locks, then the queue of each
-- ARGV[4i - 3]  the number of the claim's locks
-- ARGV[4i - 2]  the claim's value
-- ARGV[4i - 1]  the token under which it waits; empty if it does not
-- ARGV[4i]      for how many more milliseconds the locks stay held; negative to release now without
--               notifying any process
--
-- Returns a string: 1 for each claim that held all its locks, else 0; then + if there are more
-- waiters to serve, for which the caller repeats the same call.

local results = {}
local key = 2
for i = 1, #ARGV, 4 do
  local locks, queues, value, token, after = {}, {}, ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  for _ = 1, ARGV[i] do
    table.insert(locks, KEYS[key])
    table.insert(queues, KEYS[key + ARGV[i]])
    key = key + 1
  end
  key = key + #locks

  local had, queued = 0, any_exists(queues)
  for _, lock in ipairs(locks) do
    local kind, holder, ends = held_by(lock)
    if ends or queued then
      touched[lock] = true
    end
    if holder == value or (kind == 'x' and holder == value_alone(value)) or shares(lock, kind, value) then
      had = had + 1
      if kind == 'x' and after > 0 and not ends then
        redis.call('PEXPIRE', lock, after)
      elseif kind == 'x' then
        redis.call('DEL', lock)
        if after > 0 then
          redis.call('SET', lock, holder, 'PX', after)
        end
      elseif after <= 0 then
        redis.call('ZREM', lock, value)
        end_with_the_last(lock)
      else
        -- Out of memory, the server refuses ZADD as the first write of a script, but not after a
        -- PEXPIRE.
        end_with_the_last(lock)
        redis.call('ZADD', lock, millis() + after, value)
        end_with_the_last(lock)
      end
    end
  end
  if token ~= '' then
    leave(locks, token)
  end
  -- The release stands even if the next claim cannot be served, as on a server out of memory.
  -- Waiters ask again.
  if after >= 0 and queued then
    budget = 12
    pcall(serve, locks, KEYS[1])
  end
  table.insert(results, had == #locks and 1 or 0)
end
pcall(secure_touched)
return table.concat(results) .. (unfinished and '+' or '')
