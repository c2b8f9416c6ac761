-- The usual cases of release.lua, before all that the others need is even defined: one lock, which the claim
-- has alone and gives back now, and which nobody waits for, or first of all a claim that wants it alone.

if #KEYS == 3 and ARGV[3] == '' and ARGV[4] == '0' then
  local lock, queue = KEYS[2], KEYS[3]
  local held = redis.pcall('GET', lock)
  if held == ARGV[2] then
    return tostring(redis.call('DEL', lock))
  end
  local value, ends, kept = nil, nil, nil
  if type(held) == 'string' then
    value, ends, kept = unmarked(held)
  end
  if ends and value == ARGV[2] and ends > millis() then
    local first = redis.call('ZRANGE', queue, 0, 1)
    if not first[1] then
      return tostring(redis.call('DEL', lock))
    end
    local record = waiter_of(first[1])
    local details = redis.call('GETDEL', record)
    local heard, ttl, wants = string.match(details or '', '^(%d+) (%d+) x (.*)$')
    if wants and string.sub(wants, 1, 2) ~= 'm ' then
      ttl = tonumber(ttl)
      local lease, more = lease_of(ttl, tonumber(heard)), first[2] and 1 or 0
      local message = string.format('granted %s %.0f %.0f %d %d',
        first[1], count(KEYS[1]), time(), more, ttl - lease)
      redis.call('ZREM', queue, first[1])
      -- If nobody hears it, its process is gone, and it is the next one's turn.
      if tell(wants, message) > 0 then
        if first[2] then
          set_marked(lock, wants, millis() + lease, kept)
        else
          redis.call('SET', lock, wants, 'PX', lease)
        end
        return '1'
      end
    elseif details then
      -- A claim of another kind. It keeps its place, and its record for as long as before.
      local asked, lasts = string.match(details, '^(%d+) (%d+) ')
      local most = waits_for(tonumber(lasts))
      local left = math.ceil(most - (time() - asked) / 1000)
      redis.call('SET', record, details, 'PX', math.min(math.max(left, 1), most))
    end
  end
end
