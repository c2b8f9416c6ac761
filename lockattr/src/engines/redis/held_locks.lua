-- What is held under some names.
--
-- KEYS[2i - 1]  a lock
-- KEYS[2i]      its queue
--
-- Returns for each that is held { its number among them, a holder's value, milliseconds until that
-- lease ends or negative, how many share it or 0 if one has it alone, how many wait }. What another
-- program keeps there that is no lock is passed over.

local LONGEST = 4096 -- of a value; more than any of ours, and less than what others may keep there

local answers = {}
for i = 1, #KEYS, 2 do
  local lock, line = KEYS[i], KEYS[i + 1]
  local kind, held, ends = held_by(lock)
  if kind and kind ~= '?' then
    local sharers = kind == 'x' and 0 or sharers_of(lock)
    table.insert(answers, { (i + 1) / 2, string.sub(held, 1, LONGEST), ends_in(lock, kind, ends), sharers,
      redis.call('ZCARD', line) })
  end
end
return answers
