-- The usual cases of acquire.lua, before all that the others need is even defined: one lock, for a claim
-- that wants it alone, which is free, or which another claim of this library has.

if #KEYS == 3 and ARGV[3] == 'x' then
  local lock, queue, value, ttl = KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2])
  local held = redis.pcall('SET', lock, value, 'PX', ttl, 'NX', 'GET')
  if not held and redis.call('EXISTS', queue) == 0 then
    local counted, number = pcall(count, KEYS[1], ARGV[5] and tonumber(ARGV[5]))
    if counted then
      return 2 * number
    end
    -- An acquisition without a number is none.
    redis.call('DEL', lock)
    error(number)
  elseif not held then
    -- Another program deleted a lock that claims wait for.
    redis.call('DEL', lock)
  end
  local holder, ends, kept = nil, nil, nil
  if type(held) == 'string' and ARGV[4] == '+' and not ARGV[6] then
    holder, ends, kept = unmarked(held)
  end
  if holder and holder ~= value and is_ours(holder) and (not ends or ends > millis()) then
    local plain = not ends
    if plain then
      ends = millis() + redis.call('PTTL', lock)
    end
    local token = string.sub(value, 1, 32)
    local record = string.format('%.0f %.0f x ', time(), ttl) .. value
    -- A claim that has a record looks again: then acquire.lua also sees to those before it.
    if ends >= millis() and not redis.call('SET', waiter_of(token), record, 'PX', waits_for(ttl), 'GET') then
      local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
      local since = last[2] and math.max(time(), last[2] + 1) or time()
      local place = 0
      if redis.call('ZADD', queue, 'NX', since, token) == 0 then
        -- Its place went with its record.
        redis.call('ZADD', queue, since, token)
      end
      if last[1] then
        place = redis.call('ZRANK', queue, token)
      else
        tell(holder, 'wanted ' .. lock)
      end
      if plain or not last[1] or kept < millis() + LASTS then
        redis.call('PEXPIRE', queue, KEPT)
        set_marked(lock, holder, ends, millis() + KEPT)
      end
      return { holder, ends - millis(), time(), place }
    end
  end
end
