-- What a lock that one claim has alone looks like, and the record of a waiter.
--
-- The lock is a string. Without waiters it is the claim's value, and the key ends with the lease: so a
-- client takes a free lock by a bare `SET NX`, and gives it back by the server's own compare-and-delete. While
-- claims wait for it, the value is marked:
--
--   queued=1 until=MILLIS kept=MILLIS VALUE
--
-- `until` is the end of the lease, by the server's clock; `kept` is the end of the queue, unless it is refreshed. The key lives until the
-- later of the two. So a lock with waiters is never absent, and no `SET NX` overtakes them. Without a VALUE the
-- mark is a reservation: nobody has the lock. The 1 is the version of this format.
--
-- A value begins with the owner token: 32 digits, the first 16 of which name the claim's inbox.

local LEAST, MOST = 1000, 15000 -- milliseconds that a waiter lasts: as long as its lease, within these
local LASTS = MOST + 1000 -- milliseconds that a queue lasts at least after a question
local KEPT = 2 * LASTS -- for so long it is made to last, so that not every question has to

local function millis()
  return math.floor(time() / 1000)
end

-- The value in a lock's string; and, if it is marked, when the lease and the queue end.
local function unmarked(text)
  if string.sub(text, 1, 9) == 'queued=1 ' then
    local ends, kept, value = string.match(text, '^queued=1 until=(%d+) kept=(%d+) (.*)$')
    if value then
      return value, tonumber(ends), tonumber(kept)
    end
  end
  return text
end

-- Writes a lock with waiters; an empty value reserves it.
local function set_marked(lock, value, ends, kept)
  local text = string.format('queued=1 until=%.0f kept=%.0f ', ends, kept) .. value
  redis.call('SET', lock, text, 'PX', math.max(ends, kept) - millis())
end

-- Whether a claim of this library wrote the value. Those of other programs are never marked: their own
-- compare-and-delete has to find them as they wrote them.
local function is_ours(value)
  local _, last = string.find(value, '^%x+ ')
  return last == 33
end

local slot = string.match(KEYS[1], '^lockattr:fence:({%d+})$')

-- Where it stands what the waiter with this token wants.
local function waiter_of(token)
  return 'lockattr:waiter:' .. (slot and slot .. ':' or '') .. token
end

-- For how many milliseconds a waiter lasts that asks for a lease of so many.
local function waits_for(ttl)
  return math.min(math.max(ttl, LEAST), MOST)
end

-- For how many milliseconds a claim gets its locks by a message. Its process may have stopped right after
-- it asked last: whatever it is granted, it costs the others one TTL from then on, and no more.
local function lease_of(ttl, heard)
  local longest, silent = math.max(ttl, LEAST), (time() - heard) / 1000
  if silent < 0 or silent > longest then
    -- The clock is another one, or was set.
    silent = 0
  end
  return math.max(1, math.floor(math.min(ttl, longest - silent)))
end

-- Publishes to the inbox of a claim; how many heard it.
local function tell(value, message)
  return publish(string.sub(value, 1, 16), message)
end

