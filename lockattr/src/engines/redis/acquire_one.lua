-- The other usual cases of acquire.lua, before all that the rest need is even defined: one lock, for a claim that
-- wants it alone, which is free, or which another claim of this library has and no process waits for.

if #KEYS == 3 and ARGV[3] == 'x' and not looks then
  local lock, queue, value, ttl = KEYS[2], KEYS[3], ARGV[1], ARGV[2]
  if not held and call('EXISTS', queue) == 0 then
    local counted, number = pcall(count, KEYS[1], ARGV[5] and tonumber(ARGV[5]))
    if counted then
      return 2 * number
    end
    -- An acquisition without a number is none.
    call('DEL', lock)
    error(number)
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
    looks = ends <= at or call('SET', WAITER .. token, record, 'PX', digits(waits_for(ttl + 0)), 'GET')
    if not looks then
      -- It is the first, as far as a lock without a mark says; if a program has meddled, it looks a little sooner.
      call('ZADD', queue, clock(), token)
      place = 0
    end
  end
  if place then
    tell(holder, 'wanted ' .. lock)
    call('PEXPIRE', queue, KEPT)
    set_marked(lock, holder, ends, digits(at + KEPT))
    return { holder, ends - at, time(), 0 }
  end
end
