-- What the scripts share: who holds a lock, which claims wait for it, and which of them is next.
--
-- A lock that one claim has alone is a plain string: the claim's value. One that is shared is a
-- sorted set of values, by the millisecond in which each lease ends. The wait queue of a lock is a
-- sorted set of owner tokens, by the microsecond in which they came. What a waiter wants is a string
-- under a name of its own, however many locks it waits for:
--
--   HEARD TTL MODE VALUE                   one lock; MODE is x, s, or p and the number of permits,
--                                          with a t before it for one that is only told
--   HEARD TTL MODE m LENGTH,… NAME… VALUE  several: the lengths of the locks' names, the names
--
-- HEARD is the microsecond in which the waiter asked last, which no question has in it.
-- That string is a lease, too: it ends unless the waiter's process asks again in time, and a token in
-- a queue without it is that of a process that was killed, stopped or cut off.
--
-- A value begins with the owner token: 32 digits, the first 16 of which name the claim's inbox.

local SEVERAL_ARE_OVERTAKEN = 1000000 -- microseconds
local LEAST, MOST = 1000, 15000 -- milliseconds that a waiter lasts: as long as its lease, within these
local QUEUE_LASTS = MOST + 1000

-- No run looks at more waiters: a longer one would keep the server's other clients waiting. One that has
-- not come to its end says so, and is run again.
local budget = 12
local unfinished = false

local function millis()
  return math.floor(time() / 1000)
end

local slot = string.match(KEYS[1], '^lockattr:fence:({%d+})$')

-- The queue of a lock, in the lock's own hash slot. A name that has no hash tag becomes one, unless
-- it has a brace that would end it: then the tag of the slot's counter serves, in a cluster.
local function queue_of(lock)
  local tag = string.match(lock, '{(.-)}')
  if tag and tag ~= '' then
    return 'lockattr:line:' .. lock
  end
  if slot and string.find(lock, '}', 1, true) then
    return 'lockattr:line-of:' .. slot .. ':' .. lock
  end
  return 'lockattr:line-of:{' .. lock .. '}'
end

-- Where it stands what the waiter with this token wants.
local function waiter_of(token)
  return 'lockattr:waiter:' .. (slot and slot .. ':' or '') .. token
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

-- Whether any of these names is there.
local function any_exists(names)
  for i = 1, #names, 1000 do
    if redis.call('EXISTS', unpack(names, i, math.min(i + 999, #names))) > 0 then
      return true
    end
  end
  return false
end

local function admits_all(locks, mode)
  if #locks > 1 and not any_exists(locks) then
    return true
  end
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

-- Whether one of the locks has a queue, be it of claims that are gone.
local function are_queued(locks)
  local queues = {}
  for i, lock in ipairs(locks) do
    queues[i] = queue_of(lock)
  end
  return any_exists(queues)
end

-- Publishes to the inbox of a claim; how many heard it.
local function tell(value, message)
  return publish(string.sub(value, 1, 16), message)
end

-- For how many milliseconds a claim gets its locks by a message. Its process may have stopped right after
-- it asked last: whatever it is granted, it costs the others one TTL from then on, and no more.
local function lease_of(claim)
  local longest, silent = math.max(claim.ttl, LEAST), (time() - claim.heard) / 1000
  if silent < 0 or silent > longest then
    -- The clock is another one, or was set.
    silent = 0
  end
  return math.max(1, math.floor(math.min(claim.ttl, longest - silent)))
end

-- Reads what a waiter for `lock` wants.
local function read(details, lock)
  local ttl, told, mode, rest = string.match(details, '^(%d+) (t?)(%S+) (.*)$')
  local claim = { ttl = tonumber(ttl), told = told == 't', mode = mode, value = rest, locks = { lock } }
  local lengths, names = string.match(rest, '^m ([%d,]+) (.*)$')
  if lengths then
    local start = 1
    claim.locks, claim.several = {}, true
    for length in string.gmatch(lengths, '%d+') do
      table.insert(claim.locks, string.sub(names, start, start + length - 1))
      start = start + length
    end
    claim.value = string.sub(names, start)
  end
  return claim
end

local read_already = {} -- claims for several locks, by their tokens

-- The waiter in this place of a queue, of which the first is 0, or nothing if there is none. Those that
-- are gone are taken out on the way.
local function waiter_in(lock, place)
  local queue, lapsed = queue_of(lock), {}
  while true do
    local entry = redis.call('ZRANGE', queue, place + #lapsed, place + #lapsed, 'WITHSCORES')
    local token = entry[1]
    local claim = token and read_already[token]
    local details = token and not claim and redis.call('GET', waiter_of(token))
    if token and not claim and not details then
      table.insert(lapsed, token)
      budget = budget - 1
    end
    if not token or claim or details or budget <= 0 then
      if lapsed[1] then
        redis.call('ZREM', queue, unpack(lapsed))
      end
      if details then
        local heard, wants = string.match(details, '^(%d+) (.*)$')
        claim = read(wants, lock)
        claim.token, claim.heard = token, tonumber(heard)
        if claim.several then
          read_already[token] = claim
        end
      elseif not claim then
        unfinished = unfinished or token
        return nil
      end
      claim.since = entry[2]
      return claim
    end
  end
end

-- What a run of `serve` has found out. Nothing becomes free while it runs: a claim that cannot have its locks
-- cannot have them later, and one that can, can until more are taken.
local blocked, admitted, behind, gone, takes

-- Whether a claim could have all its locks now, but for those who came before it.
local function could_have(claim)
  local token = claim.token
  if not blocked[token] and admitted[token] ~= takes then
    if admits_all(claim.locks, claim.mode) then
      admitted[token] = takes
    else
      blocked[token] = true
    end
  end
  return not blocked[token]
end

-- Whether claims that came later may have what a claim for several locks waits for, because it cannot have
-- all of them. If the clock was set back, nobody knows how long it has waited.
local function is_new(claim)
  local age = time() - claim.since
  return claim.several and age >= 0 and age < SEVERAL_ARE_OVERTAKEN
end

-- The waiter does not wait for these locks any more.
local function leave(locks, token)
  if gone then
    gone[token] = true
  end
  for _, lock in ipairs(locks) do
    redis.call('ZREM', queue_of(lock), token)
  end
  redis.call('DEL', waiter_of(token))
end

-- Whether a claim for several locks comes next in the queues of all of them, but for claims for several that
-- can be passed over.
local function comes_next(claim)
  local stuck = behind[claim.token]
  if stuck and not gone[stuck.before] and stuck.takes == takes then
    return false
  end
  -- The queues before the one in which it was stuck are as they were, or shorter.
  for at = stuck and stuck.at or 1, #claim.locks do
    local place = 0
    while true do
      local before = waiter_in(claim.locks[at], place)
      if unfinished then
        return false
      elseif not before or before.token == claim.token then
        break
      elseif not is_new(before) or place >= budget or could_have(before) then
        behind[claim.token] = { at = at, before = before.token, takes = takes }
        return false
      end
      place = place + 1
    end
  end
  return true
end

-- Hands the locks to those whose turn it is, in the order in which they came; a claim that is only told has
-- to come and take them. If `asking`, a token with its value and its hint, is one of them, returns
-- its number instead of telling it; and whether anybody was served.
local function serve(locks, fence, asking)
  local granted, served
  local open = { unpack(locks) }
  blocked, admitted, behind, gone, takes = {}, {}, {}, {}, 0
  while #open > 0 and not unfinished do
    local lock = table.remove(open)
    local overtaken = 0
    while true do
      local claim = waiter_in(lock, overtaken)
      if not claim then
        break
      elseif budget <= 0 then
        unfinished = true
        break
      end
      if could_have(claim) and (not claim.several or comes_next(claim)) then
        budget = budget - 1
        leave(claim.locks, claim.token)
        if asking and asking.token == claim.token then
          granted, served, takes = count(fence, asking.hint), true, takes + 1
          take(claim.locks, claim.mode, asking.value, claim.ttl)
        elseif claim.told then
          -- Those behind have to wait for it, but for those who could share with it.
          if tell(claim.value, string.format('later %s 0', claim.token)) > 0 then
            served = true
            if claim.mode ~= 's' then
              break
            end
          end
        else
          local counter = count(fence)
          local wanted = are_queued(claim.locks) and 1 or 0
          local lease = lease_of(claim)
          local message = string.format('granted %s %.0f %.0f %d %d',
            claim.token, counter, time(), wanted, claim.ttl - lease)
          -- Nobody hears it: its process is gone. Then the next one's turn has come.
          local heard = tell(claim.value, message) > 0
          if heard then
            served, takes = true, takes + 1
            take(claim.locks, claim.mode, claim.value, lease)
          end
          -- Others may share the other locks with it, or be next there in its place.
          if claim.several and (not heard or claim.mode ~= 'x') then
            for _, other in ipairs(claim.locks) do
              table.insert(open, other)
            end
          end
        end
      elseif is_new(claim) and admits(lock, claim.mode) then
        -- It waits for another key: the next one may have this.
        overtaken = overtaken + 1
        if overtaken >= budget then
          break
        end
      else
        break
      end
    end
  end
  return granted, served
end
