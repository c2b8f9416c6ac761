-- What the scripts share: who holds a lock, who stands in line for it, and whose turn it is.
--
-- A lock that one claim has alone is a plain string: the claim's value. One that is shared is a
-- sorted set of values, by the millisecond in which each lease ends. Those in line are a sorted set
-- of entries, by the microsecond in which they came:
--
--   TTL MODE VALUE                     for one key; MODE is x, s, or p and the number of permits,
--                                      with a t before it for one that is only told
--   TTL MODE m LENGTH,… NAME… VALUE    for several: the lengths of the locks' names, the names
--
-- A value begins with the owner token: 32 digits, the first 16 of which name the claim's inbox.

local SEVERAL_ARE_OVERTAKEN = 1000000 -- microseconds
local LINE_LASTS = 60000 -- milliseconds; who stands in it asks four times as often

local function millis()
  return math.floor(time() / 1000)
end

-- The line of a lock, in the lock's own hash slot. A name that has no hash tag becomes one, unless
-- it has a brace that would end it: then the tag of the slot's counter serves, in a cluster.
local function line_of(lock)
  local tag = string.match(lock, '{(.-)}')
  if tag and tag ~= '' then
    return 'lockattr:line:' .. lock
  end
  local slot = string.match(KEYS[1], '^lockattr:fence:({%d+})$')
  if slot and string.find(lock, '}', 1, true) then
    return 'lockattr:line-of:' .. slot .. ':' .. lock
  end
  return 'lockattr:line-of:{' .. lock .. '}'
end

-- Who has a lock: nothing, or the kind of hold and a value. The kind is x (alone), s (shared), p
-- (permits), or ? for what another program keeps under this name.
local function held_by(lock)
  -- pcall, because it may not be a string. Any other error is no answer, and is raised.
  local held = redis.pcall('GET', lock)
  if not held then
    return nil
  elseif type(held) == 'string' then
    return 'x', held
  elseif not string.find(held.err, 'WRONGTYPE', 1, true) then
    redis.call('GET', lock)
  end
  local first = redis.pcall('ZRANGE', lock, 0, 0)
  local kind = first[1] and string.match(first[1], '^%x+ mode=([sp])')
  if not kind then
    return '?', ''
  end
  if redis.call('ZREMRANGEBYSCORE', lock, '-inf', millis()) > 0 then
    first = redis.call('ZRANGE', lock, 0, 0)
    if not first[1] then
      return nil
    end
  end
  return kind, first[1]
end

-- Whether a claim of this mode could have the lock now, but for those who came before it.
local function admits(lock, mode)
  local kind = held_by(lock)
  if not kind then
    return true
  elseif mode == 's' then
    return kind == 's'
  end
  local permits = string.match(mode, '^p(%d+)$')
  return permits and kind == 'p' and redis.call('ZCARD', lock) < tonumber(permits)
end

local function admits_all(locks, mode)
  for _, lock in ipairs(locks) do
    if not admits(lock, mode) then
      return false
    end
  end
  return true
end

-- Whether the claim has the lock.
local function has(lock, value)
  local kind, held = held_by(lock)
  if kind == 'x' then
    return held == value
  end
  return (kind == 's' or kind == 'p') and redis.call('ZSCORE', lock, value)
end

-- After how many milliseconds the first lease on a lock of this kind ends; negative if none does.
local function ends_in(lock, kind)
  if kind == 's' or kind == 'p' then
    return redis.call('ZRANGE', lock, 0, 0, 'WITHSCORES')[2] - millis()
  end
  return kind and redis.call('PTTL', lock) or -1
end

-- Sets a shared lock to end with the last of its leases.
local function end_with_the_last(lock)
  local last = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIRE', lock, last[2] - millis())
  end
end

local function take(locks, mode, value, ttl)
  for _, lock in ipairs(locks) do
    if mode == 'x' then
      redis.call('SET', lock, value, 'PX', ttl)
    else
      redis.call('ZADD', lock, millis() + ttl, value)
      end_with_the_last(lock)
    end
  end
end

-- Whether anybody stands in line for one of the locks.
local function is_wanted(locks)
  for _, lock in ipairs(locks) do
    if redis.call('EXISTS', line_of(lock)) == 1 then
      return true
    end
  end
  return false
end

-- Publishes to the inbox of a claim; how many heard it.
local function tell(value, message)
  return publish(string.sub(value, 1, 16), message)
end

-- Reads an entry of the line of `lock`.
local function read(entry, lock)
  local ttl, told, mode, rest = string.match(entry, '^(%d+) (t?)(%S+) (.*)$')
  told = told == 't'
  local lengths, names = string.match(rest, '^m ([%d,]+) (.*)$')
  if not lengths then
    return { ttl = tonumber(ttl), told = told, mode = mode, value = rest, locks = { lock } }
  end
  local locks, start = {}, 1
  for length in string.gmatch(lengths, '%d+') do
    table.insert(locks, string.sub(names, start, start + length - 1))
    start = start + length
  end
  local value = string.sub(names, start)
  return { ttl = tonumber(ttl), told = told, mode = mode, value = value, locks = locks,
    several = true }
end

-- Tells one who stands in line for a lock to ask again, so many milliseconds later; how many heard it.
local function tell_later(entry, lock, after)
  local value = read(entry, lock).value
  return tell(value, string.format('later %s %.0f', string.sub(value, 1, 32), after))
end

-- Those in line for a lock count on a lease that had `left` milliseconds left, or on none if that is
-- negative. If the one after it ends sooner, the first of them has to know that.
local function tell_sooner(lock, left)
  local ends = ends_in(lock, (held_by(lock)))
  if ends < 0 or (left >= 0 and ends >= left) then
    return
  end
  for _, entry in ipairs(redis.call('ZRANGE', line_of(lock), 0, -1)) do
    -- Redis counts in milliseconds: one more, and it is certainly over.
    if tell_later(entry, lock, ends + 1) > 0 then
      return
    end
  end
end

local function take_out(locks, entry)
  for _, lock in ipairs(locks) do
    redis.call('ZREM', line_of(lock), entry)
  end
end

-- Hands the locks to those whose turn it is, in the order in which they came; who is only told has
-- to come and take them. If `asking`, an entry with its value and its hint, is one of them, returns
-- its number instead of telling it; and whether anybody was served.
local function serve(locks, fence, asking)
  local granted, served
  local open = { unpack(locks) }
  while #open > 0 do
    local lock = table.remove(open)
    local overtaken = 0
    while true do
      local first = redis.call('ZRANGE', line_of(lock), overtaken, overtaken, 'WITHSCORES')
      if not first[1] then
        break
      end
      local claim = read(first[1], lock)
      if admits_all(claim.locks, claim.mode) then
        take_out(claim.locks, first[1])
        if asking and asking.entry == first[1] then
          granted, served = count(fence, asking.hint), true
          take(claim.locks, claim.mode, asking.value, claim.ttl)
        elseif claim.told then
          -- Those behind have to wait for it, but for those who could share with it.
          if tell_later(first[1], lock, 0) > 0 then
            served = true
            if claim.mode ~= 's' then
              break
            end
          end
        else
          local counter = count(fence)
          local wanted = is_wanted(claim.locks) and 1 or 0
          local message = string.format('granted %s %.0f %.0f %d',
            string.sub(claim.value, 1, 32), counter, time(), wanted)
          -- Nobody hears it: its process is gone. Then the next one's turn has come.
          if tell(claim.value, message) > 0 then
            served = true
            take(claim.locks, claim.mode, claim.value, claim.ttl)
          elseif claim.several then
            for _, other in ipairs(claim.locks) do
              table.insert(open, other)
            end
          end
        end
      elseif claim.several and time() - first[2] < SEVERAL_ARE_OVERTAKEN
        and admits(lock, claim.mode) then
        -- It waits for another key: the next one may have this.
        overtaken = overtaken + 1
      else
        break
      end
    end
  end
  return granted, served
end
