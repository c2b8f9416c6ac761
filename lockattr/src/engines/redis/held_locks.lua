-- Returns which of these locks are held.
--
-- KEYS[2i - 1]  a lock
-- KEYS[2i]      its queue
--
-- For each that is held: { its number among them, a holder's value, milliseconds until that lease
-- ends or negative, the number of claims that share it or 0 if it is exclusive, the number of
-- waiters }. Skips keys of other programs that are not locks.

local results = {}
for i = 1, #KEYS, 2 do
  local lock, queue = KEYS[i], KEYS[i + 1]
  local kind, held, ends = held_by(lock)
  if kind and kind ~= '?' then
    local sharers = kind == 'x' and 0 or sharers_of(lock)
    table.insert(results, { (i + 1) / 2, shown(held), ends_in(lock, kind, ends), sharers,
      redis.call('ZCARD', queue) })
  end
end
return results
