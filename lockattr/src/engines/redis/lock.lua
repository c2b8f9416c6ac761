-- Locks that one claim has alone, and waiters: what most scripts do with them.

-- The value in a lock's string; and, if it is marked, when the lease and, as text, the queue end.
local function unmarked(text)
  local ends, kept, from = string.match(text, MARK)
  if from then
    return string.sub(text, from), ends + 0, kept
  end
  return text
end

-- Writes a lock with waiters, whose queue ends at `kept`, a text; an empty value reserves it.
local function set_marked(lock, value, ends, kept)
  local till = digits(ends)
  local text = 'queued=1 until=' .. till .. ' kept=' .. kept .. ' ' .. value
  call('SET', lock, text, 'PXAT', ends > kept + 0 and till or kept)
end

-- Whether a claim of this library wrote the value. Those of other programs are never marked: their own
-- compare-and-delete has to find them as they wrote them.
local function is_ours(value)
  local _, last = string.find(value, '^%x+ ')
  return last == 33
end

-- For how many milliseconds a waiter lasts that asks for a lease of so many.
local function waits_for(ttl)
  return math.min(math.max(ttl, LEAST), MOST)
end

