-- Which claims wait for a lock, and which of them is next.
--
-- The wait queue of a lock is a sorted set of owner tokens, by the microsecond in which they came. What a
-- waiter wants is a string under a name of its own, however many locks it waits for:
--
--   HEARD TTL MODE VALUE                   one lock; MODE is x, s, or p and the number of permits,
--                                          with a t before it for one that is only told
--   HEARD TTL MODE m LENGTH,… NAME… VALUE  several: the lengths of the locks' names, the names
--
-- HEARD is the microsecond in which the waiter asked last, which no question has in it.
-- That string is a lease, too: it ends unless the waiter's process asks again in time, and a token in
-- a queue without it is that of a process that was killed, stopped or cut off.

local SEVERAL_ARE_OVERTAKEN = 1000000 -- microseconds

-- No run looks at more waiters: a longer one would keep the server's other clients waiting. One that has
-- not come to its end reports it, and is run again.
local budget = 12
local unfinished = false

-- Whether one of the locks has a queue, be it of claims that are gone.
local function are_queued(locks)
  local queues = {}
  for i, lock in ipairs(locks) do
    queues[i] = queue_of(lock)
  end
  return any_exists(queues)
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
    local details = token and not claim and redis.call('GET', WAITER .. token)
    if token and not claim and not details then
      table.insert(lapsed, token)
      budget = budget - 1
    end
    if not token or claim or details or budget <= 0 then
      if lapsed[1] then
        touched[lock] = true
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
-- all of them. If the clock was set back, it is unknown how long it has waited.
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
    touched[lock] = true
    redis.call('ZREM', queue_of(lock), token)
  end
  redis.call('DEL', WAITER .. token)
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
          local lease = lease_of(claim.ttl, claim.heard)
          local message = string.format('granted %s %.0f %.0f %d %d',
            claim.token, counter, time(), wanted, claim.ttl - lease)
          -- No process hears it: its process is gone. Then the next one's turn has come.
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
