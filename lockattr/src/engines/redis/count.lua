-- The clock and the fencing counter of the server.
--
-- A number that is only passed on stays text: parsing or formatting one costs a quarter of a call.
-- `+ 0` parses text; `tonumber` would parse it twice.

local now -- microseconds since 1970, computed when first needed

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

-- Formats a whole number that is not negative. In two halves, because `%d` takes 32 bits on some
-- machines; not with `%.0f` or in the server, which use long division.
local function digits(number)
  if number < 1e9 then
    return string.format('%d', number)
  end
  return string.format('%d%09d', number / 1e9, number % 1e9)
end

local EPOCH = 1704067200000000 -- 2024-01-01, in microseconds

-- Returns the next fencing token, and its decimals: microseconds since 2024-01-01 by the server's
-- clock or by `hint`, or one more than the last token. A server that lost its data still counts up,
-- and a clock that is set back does not take the counter back. Below 2^53 until 2309, so exact as a
-- double.
local function count(fence, hint)
  local proposed = hint or time() - EPOCH
  local counter, text = proposed, digits(proposed)
  -- One call writes and reads. No client sees the value before it is corrected below.
  local last = (before or call('SET', fence, text, 'GET') or 0) + 0
  -- A hint close to the last token needs no check against the clock.
  if hint and (last == 0 or hint > last + FARTHEST_HINT) then
    local clock = time() - EPOCH
    counter = hint <= clock + FARTHEST_HINT and hint or clock
  end
  if counter <= last then
    counter = last + 1
  end
  if counter ~= proposed then
    text = digits(counter)
    call('SET', fence, text)
  end
  return counter, text
end

