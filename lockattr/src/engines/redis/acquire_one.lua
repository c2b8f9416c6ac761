-- The other fast paths of acquire.lua, before the functions that the rest needs are defined: one
-- exclusive lock that is free, or that another claim of this library holds and no process waits
-- for.

if #KEYS == 3 and ARGV[3] == 'x' and not is_waiting then
  local lock, queue, value, ttl = KEYS[2], KEYS[3], ARGV[1], ARGV[2]
  if not held and call('EXISTS', queue) == 0 then
    local counted, result = pcall(count, KEYS[1], ARGV[5] and tonumber(ARGV[5]))
    if counted then
      return 2 * result
    end
    -- An acquisition without a fencing token does not count.
    call('DEL', lock)
    error(result)
  elseif not held then
    -- Another program deleted a lock that claims wait for.
    call('DEL', lock)
  end
  local holder, ends = nil, nil
  if type(held) == 'string' and ARGV[4] == '+' and not ARGV[6] then
    holder, ends = unmarked(held)
  end
  local at = holder and math.floor(time() / 1000)
  if holder and not ends and holder ~= value and is_ours(holder) then
    ends = at + call('PTTL', lock)
    local token = string.sub(value, 1, 32)
    local record = clock() .. ' ' .. ttl .. ' x ' .. value
    is_waiting = ends <= at or call('SET', WAITER .. token, record, 'PX', digits(record_lifetime(ttl + 0)), 'GET')
    if not is_waiting then
      -- A lock without a mark has no other waiters, so the claim is the first. If another program
      -- removed the mark, the claim only asks again earlier than it must.
      call('ZADD', queue, clock(), token)
      place = 0
    end
  end
  if place then
    notify(holder, 'wanted ' .. lock)
    call('PEXPIRE', queue, KEPT)
    set_marked(lock, holder, ends, digits(at + KEPT))
    return { holder, ends - at, time(), 0 }
  end
end
