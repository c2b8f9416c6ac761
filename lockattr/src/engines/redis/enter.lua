-- The fastest paths of acquire.lua, before any function is defined: ten definitions cost as much as
-- a call. One exclusive lock that is free, with a hint for its token; or that another claim holds
-- and others already wait for.

local held, is_waiting, place -- the lock's value; whether the claim already waits; its new place in the queue

if #KEYS == 3 and ARGV[3] == 'x' then
  local lock, queue, value, ttl = KEYS[2], KEYS[3], ARGV[1], ARGV[2]
  held = redis.pcall('SET', lock, value, 'PX', ttl, 'NX', 'GET')
  local ends, kept, from = nil, nil, nil
  if type(held) == 'string' and ARGV[4] == '+' and not ARGV[6] then
    ends, kept, from = string.match(held, MARK)
  end
  local hint = tonumber(ARGV[5] or '')
  if not held and hint and call('EXISTS', queue) == 0 then
    before = redis.pcall('SET', KEYS[1], ARGV[5], 'GET') or 0
    local last = tonumber(before)
    if last and hint > last and last > 0 and hint <= last + FARTHEST_HINT then
      return 2 * hint
    end
    -- If the server refused this SET, it also refuses that of `count`.
    before = type(before) ~= 'table' and before or nil
  elseif ends then
    local parts = call('TIME')
    stamp = parts[1] .. string.sub('00000' .. parts[2], -6)
    local now, holder = stamp + 0, string.sub(held, from)
    local left = ends - math.floor(now / 1000)
    if holder ~= value and left > 0 and kept - LASTS >= ends - left then
      local token = string.sub(value, 1, 32)
      local lasts = string.format('%d', math.min(math.max(ttl, LEAST), MOST))
      -- A claim with a record asks again: then acquire.lua also serves the waiters before it.
      is_waiting = call('SET', WAITER .. token, stamp .. ' ' .. ttl .. ' x ' .. value, 'PX', lasts, 'GET')
      if not is_waiting then
        -- To the end of the queue, even if it had a place: that expired with its record.
        call('ZADD', queue, stamp, token)
        -- The end of a short queue shows the place.
        local last = call('ZRANGE', queue, '-3', '-1')
        place = #last - 1
        if place == 2 then
          place = call('ZCARD', queue) - 1
        end
        if last[#last] ~= token then
          -- The clock was set back.
          local since = call('ZRANGE', queue, '-1', '-1', 'WITHSCORES')[2] + 1
          call('ZADD', queue, string.format('%.0f', since), token)
        end
        if place > 0 then
          return { holder, left, now, place }
        end
      end
    end
  end
end

