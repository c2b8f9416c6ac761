-- Gives locks back, where the claim still has them; takes claims out of the line; and hands on what
-- has become free.
--
-- KEYS[1]       the fencing counter
-- KEYS[2 …]     for each claim, its locks, and then the line of each
-- ARGV[4i - 3]  the number of the claim's locks
-- ARGV[4i - 2]  the claim's value
-- ARGV[4i - 1]  its entry in the line; empty if it does not stand there
-- ARGV[4i]      for how many milliseconds the locks stay taken still; negative to free them and tell
--               nobody
--
-- Returns a string: 1 for each claim that had its locks, else 0.

local answers = {}
local key = 2
for i = 1, #ARGV, 4 do
  local locks, value, entry, after = {}, ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  for _ = 1, ARGV[i] do
    table.insert(locks, KEYS[key])
    key = key + 1
  end
  key = key + #locks

  local had, left = 0, {}
  for nth, lock in ipairs(locks) do
    left[nth] = false
    local kind, holder = held_by(lock)
    if holder == value or ((kind == 's' or kind == 'p') and redis.call('ZSCORE', lock, value)) then
      had = had + 1
      left[nth] = after == 0 and ends_in(lock, kind)
      if after <= 0 and kind == 'x' then
        redis.call('DEL', lock)
      elseif after <= 0 then
        redis.call('ZREM', lock, value)
        end_with_the_last(lock)
      else
        if kind == 'x' then
          redis.call('PEXPIRE', lock, after)
        else
          redis.call('ZADD', lock, millis() + after, value)
          end_with_the_last(lock)
        end
        -- It ends earlier than those in line were told.
        for _, waiting in ipairs(redis.call('ZRANGE', line_of(lock), 0, -1)) do
          tell_later(waiting, lock, after)
        end
      end
    end
  end
  if entry ~= '' then
    take_out(locks, entry)
  end
  -- What was given back stays so if the next in line cannot be served: a server that is out of
  -- memory refuses that. They ask again.
  if after >= 0 then
    pcall(serve, locks, KEYS[1])
  end
  for nth, lock in ipairs(locks) do
    if left[nth] then
      tell_sooner(lock, left[nth])
    end
  end
  table.insert(answers, had == #locks and 1 or 0)
end
return table.concat(answers)
