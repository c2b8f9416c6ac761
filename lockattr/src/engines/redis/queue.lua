-- The wait queue of a lock, and which waiter is next.
--
-- The queue is a sorted set of owner tokens, scored by the microsecond in which they came. What a
-- waiter wants is one string, its record, however many locks it waits for:
--
--   HEARD TTL MODE VALUE                   one lock; MODE is x, s, or p and the number of permits, with
--                                          a t before it if the waiter is only told to ask again
--   HEARD TTL MODE m LENGTH,… NAME… VALUE  several: the lengths of the locks' names, then the names
--
-- HEARD is the microsecond of the waiter's last request; requests do not contain it. The record is
-- also a lease: it expires unless the waiter's process asks again in time. A token in a queue
-- without a record belongs to a process that was killed, stopped or cut off.

local SEVERAL_ARE_OVERTAKEN = 1000000 -- microseconds

-- The number of waiters that one run may read: a longer run would block the server's other clients.
-- A run that does not finish reports it, and is run again.
local budget = 12
local unfinished = false

-- Whether one of the locks has a queue, even if all claims in it are gone.
local function are_queued(locks)
  local queues = {}
  for i, lock in ipairs(locks) do
    queues[i] = queue_of(lock)
  end
  return any_exists(queues)
end

-- Parses the record of a waiter for `lock`, without HEARD.
local function read(details, lock)
  local ttl, notify_only, mode, rest = string.match(details, '^(%d+) (t?)(%S+) (.*)$')
  local claim = { ttl = tonumber(ttl), notify_only = notify_only == 't', mode = mode, value = rest, locks = { lock } }
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

local read_already = {} -- claims for several locks, by token

-- Returns the waiter in this place of a queue, the first being 0, or nothing if there is none.
-- Removes waiters that are gone on the way.
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

-- The findings of one run of `serve`. No lock becomes free while it runs: a blocked claim stays
-- blocked, and an admitted one stays admitted until the next grant.
local blocked, admitted, behind, gone, grants

-- Whether a claim could hold all its locks now, apart from earlier waiters.
local function could_have(claim)
  local token = claim.token
  if not blocked[token] and admitted[token] ~= grants then
    if admits_all(claim.locks, claim.mode) then
      admitted[token] = grants
    else
      blocked[token] = true
    end
  end
  return not blocked[token]
end

-- Whether later claims may overtake this claim for several locks while it cannot have all of them.
-- If the clock was set back, the claim's age is unknown.
local function is_new(claim)
  local age = time() - claim.since
  return claim.several and age >= 0 and age < SEVERAL_ARE_OVERTAKEN
end

-- Removes the waiter from the queues of these locks.
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

-- Whether a claim for several locks is next in all of their queues, apart from claims for several
-- locks that it may overtake.
local function is_next(claim)
  local stuck = behind[claim.token]
  if stuck and not gone[stuck.before] and stuck.grants == grants then
    return false
  end
  -- The queues before the one that stopped it are unchanged, or shorter.
  for at = stuck and stuck.at or 1, #claim.locks do
    local place = 0
    while true do
      local before = waiter_in(claim.locks[at], place)
      if unfinished then
        return false
      elseif not before or before.token == claim.token then
        break
      elseif not is_new(before) or place >= budget or could_have(before) then
        behind[claim.token] = { at = at, before = before.token, grants = grants }
        return false
      end
      place = place + 1
    end
  end
  return true
end

-- Grants the locks to the waiters that are next, in the order in which they came. A waiter with a t
-- is only notified, and must acquire the locks itself. If `requester` (a token with its value and
-- hint) is next, returns its fencing token instead of notifying it. Also returns whether any claim
-- was served.
local function serve(locks, fence, requester)
  local granted, served
  local open = { unpack(locks) }
  blocked, admitted, behind, gone, grants = {}, {}, {}, {}, 0
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
      if could_have(claim) and (not claim.several or is_next(claim)) then
        budget = budget - 1
        leave(claim.locks, claim.token)
        if requester and requester.token == claim.token then
          granted, served, grants = count(fence, requester.hint), true, grants + 1
          grant(claim.locks, claim.mode, requester.value, claim.ttl)
        elseif claim.notify_only then
          -- Waiters behind it wait for it, except those that could share the lock with it.
          if notify(claim.value, string.format('later %s 0', claim.token)) > 0 then
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
          -- If no connection receives it, the waiter's process is gone, and the next waiter is
          -- served.
          local delivered = notify(claim.value, message) > 0
          if delivered then
            served, grants = true, grants + 1
            grant(claim.locks, claim.mode, claim.value, lease)
          end
          -- Other waiters may share its other locks with it, or be next there instead of it.
          if claim.several and (not delivered or claim.mode ~= 'x') then
            for _, other in ipairs(claim.locks) do
              table.insert(open, other)
            end
          end
        end
      elseif is_new(claim) and admits(lock, claim.mode) then
        -- It waits for another lock, so the next waiter may have this one.
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
