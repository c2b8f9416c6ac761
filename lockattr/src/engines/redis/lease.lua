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

