-- The fast paths of release.lua, before the functions that the rest needs are defined: one
-- exclusive lock, released now, without waiters or with a head that wants this lock alone,
-- exclusively.

if #KEYS == 3 and ARGV[3] == '' and ARGV[4] == '0' then
  local lock, queue, value = KEYS[2], KEYS[3], ARGV[2]
  local held = redis.pcall('GET', lock)
  if held == value then
    return tostring(call('DEL', lock))
  end
  local ends, kept, from = nil, nil, nil
  if type(held) == 'string' then
    ends, kept, from = string.match(held, MARK)
  end
  local at = ends and math.floor(time() / 1000)
  if ends and string.sub(held, from) == value and ends + 0 > at then
    local first = call('ZRANGE', queue, '0', '1')
    local head = first[1]
    if not head then
      return tostring(call('DEL', lock))
    end
    local record = WAITER .. head
    local details = call('GETDEL', record)
    -- A claim for several locks has an m there, which is not a hex digit.
    local heard, ttl, wants = string.match(details or '', '^(%d+) (%d+) x ()%x')
    if wants then
      wants, ttl = string.sub(details, wants), ttl + 0
      local lease = lease_of(ttl, heard + 0)
      local _, counter = count(KEYS[1])
      local more = first[2] and ' 1 ' or ' 0 '
      local message = 'granted ' .. head .. ' ' .. counter .. ' ' .. stamp .. more .. digits(ttl - lease)
      call('ZREM', queue, head)
      -- If no connection receives it, the waiter's process is gone, and release.lua serves the next
      -- waiter.
      if notify(wants, message) > 0 then
        if first[2] then
          local till = digits(at + lease)
          local marked = 'queued=1 until=' .. till .. ' kept=' .. kept .. ' ' .. wants
          call('SET', lock, marked, 'PXAT', at + lease > kept + 0 and till or kept)
        else
          call('SET', lock, wants, 'PX', digits(lease))
        end
        return '1'
      end
    elseif details then
      -- Another kind of waiter. It keeps its place, and its record for the rest of its lifetime.
      local requested_at, lasts = string.match(details, '^(%d+) (%d+) ')
      local most = math.min(math.max(lasts, LEAST), MOST)
      local left = math.ceil(most - (time() - requested_at) / 1000)
      call('SET', record, details, 'PX', math.min(math.max(left, 1), most))
    end
  end
end

