-- Acquires locks that are free, or that this claim already holds. If it cannot and the claim waits,
-- adds the claim to their queues. All locks or none.
--
-- KEYS[1]      the fencing counter, one for the whole server or, in a cluster, for the slot
-- KEYS[2 …]    the locks, then the queue of each
-- ARGV[1]      the claim's value: owner token and holder label
-- ARGV[2]      TTL in milliseconds
-- ARGV[3]      the mode
-- ARGV[4]      the waiter's record without its time (queue.lua); + for the usual one of a single
--              lock; empty not to wait
-- ARGV[5]      the hint that replaces the server's clock; absent or empty for the clock
-- ARGV[6]      1 if the claim was queued before with a t: if it is no longer queued, it was notified
-- ARGV[7]      the value of a companion: while it holds the lock, this claim has its queue place
--
-- Returns twice the fencing token, or, if others wait, the text "TOKEN wanted". Both are exact for
-- tokens below 2^53; an odd number for the second case would not be. If the claim does not get its
-- locks, returns { a holder's value, milliseconds until a lease ends or negative, the server's time
-- in microseconds, the number of waiters before it or -1 if there are more than one run reads }.

local fence, value, ttl, mode, details = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local hint = ARGV[5] and tonumber(ARGV[5])
if details == '+' then
  details = ARGV[2] .. ' ' .. mode .. ' ' .. value
end
local notify_only, was_queued = string.find(details, '^%d+ t'), ARGV[6] == '1'
local locks, queues = {}, {}
for i = 2, 1 + (#KEYS - 1) / 2 do
  table.insert(locks, KEYS[i])
  table.insert(queues, KEYS[i + (#KEYS - 1) / 2])
end
-- A claim may wait under a different token than it acquires with.
local token = string.sub(details == '' and value or read(details).value, 1, 32)

-- Returns the reply to a claim that now holds its locks.
local queued = any_exists(queues)
local function granted(counter)
  if not queued then
    return 2 * counter
  end
  secure_touched()
  return any_exists(queues) and string.format('%.0f wanted', counter) or 2 * counter
end

local function has_all()
  for _, lock in ipairs(locks) do
    if not has(lock, value) then
      return false
    end
  end
  return true
end

-- Whether no claim comes before this one. A claim that was told to ask again is in no queue any
-- more, and comes before queued claims.
local function is_first()
  for i, lock in ipairs(locks) do
    local first = waiter_in(lock, 0)
    if unfinished or (first and first.token ~= token
      and not (notify_only and was_queued and not redis.call('ZRANK', queues[i], token))) then
      return false
    end
  end
  return true
end

local function is_beside()
  return ARGV[7] and mode ~= 'x' and has(locks[1], ARGV[7])
end

local admitted = (not queued or is_beside() or is_first()) and admits_all(locks, mode)
if admitted or has_all() then
  -- Count first: if the server refuses writes, nothing is locked.
  local counter = count(fence, hint)
  grant(locks, mode, value, ttl, not admitted)
  if queued then
    leave(locks, token)
    if mode ~= 'x' then
      -- Waiters behind it may share the lock. If serving them fails, this grant stands.
      pcall(serve, locks, fence)
    end
  end
  return granted(counter)
end

if details ~= '' then
  local record = string.format('%.0f ', time()) .. details
  local lapsed = not redis.call('SET', WAITER .. token, record, 'PX', record_lifetime(ttl), 'GET')
  local notified = {}
  for i, lock in ipairs(locks) do
    if queued and lapsed then
      -- The record has expired, and with it the claim's place in all of its queues.
      redis.call('ZREM', queues[i], token)
    end
    local last = queued and redis.call('ZRANGE', queues[i], -1, -1, 'WITHSCORES')[2]
    local since = last and math.max(time(), last + 1) or time()
    local added = redis.call('ZADD', queues[i], 'NX', since, token)
    touched[lock] = true
    if added == 1 then
      local kind, holder = held_by(lock)
      if kind == 'x' and not notified[holder] then
        notified[holder] = true
        notify(holder, 'wanted ' .. lock)
      end
    end
  end
end

-- If the last holder's lease has expired, the locks may be free for other waiters.
local counter, served
if queued and not unfinished then
  counter, served = serve(locks, fence, { token = token, value = value, hint = hint })
  if not counter and not served and not unfinished and not any_exists(queues)
    and admits_all(locks, mode) then
    -- All waiters were gone.
    counter = count(fence, hint)
    grant(locks, mode, value, ttl)
  end
end
if counter then
  return granted(counter)
end
secure_touched()

local holder, left, place = '', -1, 0
for i, lock in ipairs(locks) do
  local kind, held, ends = held_by(lock)
  if kind then
    holder, left = shown(held), ends_in(lock, kind, ends)
    place = redis.call('ZRANK', queues[i], token) or 0
    break
  end
end
return { holder, left, time(), unfinished and -1 or place }
