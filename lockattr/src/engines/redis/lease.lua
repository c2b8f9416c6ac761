-- Returns the length of a lease that is granted by a message, in milliseconds. The waiter's process
-- may have stopped right after its last request: what it is granted delays others by at most one
-- TTL from then.
local function lease_of(ttl, heard)
  local longest, silent = math.max(ttl, LEAST), (time() - heard) / 1000
  if silent < 0 or silent > longest then
    -- The clock was set, or is that of another server.
    silent = 0
  end
  return math.max(1, math.floor(math.min(ttl, longest - silent)))
end

