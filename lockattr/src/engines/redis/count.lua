-- The clock and the counter of the server.
--
-- Numbers stay the text that they came as where they are only handed off: to read or to write one takes a quarter of
-- what a call does. Where one is needed, adding 0 makes it; `tonumber` reads twice.

local now -- microseconds since 1970, made when first needed

local function clock()
  if not stamp then
    local parts = call('TIME')
    stamp = parts[1] .. string.sub('00000' .. parts[2], -6)
  end
  return stamp
end

local function time()
  if not now then
    now = clock() + 0
  end
  return now
end

-- The decimals of a whole number that is not negative. In two halves, because what `%d` takes has 32 bits on some
-- machines; and not by `%.0f`, nor by the server, which do this by long division.
local function digits(number)
  if number < 1e9 then
    return string.format('%d', number)
  end
  return string.format('%d%09d', number / 1e9, number % 1e9)
end

local EPOCH = 1704067200000000 -- 2024-01-01, in microseconds

-- The number of the next acquisition, and its decimals: microseconds since 2024-01-01, by the server's clock or by
-- `hint`, or one more than last time. A server that forgot everything still counts on, and a clock
-- that goes back does not take the counter along. Below 2^53 until 2309, so exact as a double.
local function count(fence, hint)
  local asked = hint or time() - EPOCH
  local counter, text = asked, digits(asked)
  -- Written first and read by the same call; no process sees what is mended below.
  local last = (before or call('SET', fence, text, 'GET') or 0) + 0
  -- A hint that follows the last number closely needs no look at the clock.
  if hint and (last == 0 or hint > last + FARTHEST_HINT) then
    local clock = time() - EPOCH
    counter = hint <= clock + FARTHEST_HINT and hint or clock
  end
  if counter <= last then
    counter = last + 1
  end
  if counter ~= asked then
    text = digits(counter)
    call('SET', fence, text)
  end
  return counter, text
end

