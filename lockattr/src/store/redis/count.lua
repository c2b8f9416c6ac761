-- The clock and the counter of the server.

local now -- microseconds since 1970, read when first needed

local function time()
  if not now then
    local parts = redis.call('TIME')
    now = parts[1] * 1000000 + parts[2]
  end
  return now
end

-- A hint that is further ahead than an hour does not count: a client's clock may be years ahead, and
-- a counter never goes back.
local FARTHEST_HINT = 3600000000 -- microseconds

-- The number of the next acquisition: microseconds since 2024-01-01, by the server's clock or by
-- `hint`, or one more than last time. A server that forgot everything still counts on, and a clock
-- that goes back does not take the counter along. Below 2^53 until 2309, so exact as a double.
local function count(fence, hint)
  if hint then
    -- A hint that follows the last number closely needs no look at the clock.
    local last = tonumber(redis.call('GET', fence) or 0)
    if last > 0 and hint > last and hint <= last + FARTHEST_HINT then
      redis.call('SET', fence, hint)
      return hint
    end
  end
  local clock = time() - 1704067200000000
  local counter = hint and hint <= clock + FARTHEST_HINT and hint or clock
  local last = tonumber(redis.call('SET', fence, counter, 'GET') or 0)
  if counter <= last then
    counter = last + 1
    redis.call('SET', fence, counter)
  end
  return counter
end

