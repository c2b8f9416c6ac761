-- Functions for exclusive locks and for waiters, which most scripts need.

-- Returns the part of a value that a reply may contain. Ours are shorter; that of another program may
-- have megabytes, and the server hangs up on a subscriber whose replies take more than 32 of them.
local function shown(value)
  return string.sub(value, 1, 4096)
end

-- Returns the value in a lock's string; if it is marked, also the end of the lease and, as text, of
-- the queue.
local function unmarked(text)
  local ends, kept, from = string.match(text, MARK)
  if from then
    return string.sub(text, from), ends + 0, kept
  end
  return text
end

-- Writes a lock with waiters, whose queue ends at `kept` (text). An empty value writes a
-- reservation.
local function set_marked(lock, value, ends, kept)
  local till = digits(ends)
  local text = 'queued=1 until=' .. till .. ' kept=' .. kept .. ' ' .. value
  call('SET', lock, text, 'PXAT', ends > kept + 0 and till or kept)
end

-- Whether a claim of this library wrote the value. Values of other programs are never marked: their
-- own compare-and-delete must find them unchanged.
local function is_ours(value)
  local _, last = string.find(value, '^%x+ ')
  return last == 33
end

-- Returns for how many milliseconds the record of a waiter with this TTL lasts.
local function record_lifetime(ttl)
  return math.min(math.max(ttl, LEAST), MOST)
end

