-- Takes locks that are free, or takes again those that this claim has already; joins the queue for
-- them if they are not and the claim waits. All of them or none.
--
-- KEYS[1]      the fencing counter, one for the whole server or, in a cluster, the slot
-- KEYS[2 …]    the locks, and then the queue of each
-- ARGV[1]      the claim's value: owner token and holder label
-- ARGV[2]      TTL in milliseconds
-- ARGV[3]      its mode
-- ARGV[4]      what it waits for (queue.lua); + for the usual, of one lock; empty to ask only once
-- ARGV[5]      what counts instead of the server's clock; none or empty if that does
-- ARGV[6]      1 if it waited before, to be told: where it does not any more, it was
-- ARGV[7]      the value of a claim in whose place it asks, if that one has the lock
--
-- Returns twice the number of this acquisition, or, if others wait, the number and the word "wanted":
-- both are exact below 2^53, where an odd number is not. Or
-- { a holder's value, milliseconds until a lease ends or negative, the server's time in
-- microseconds, how many wait before it or -1 if there is more to look at }.

local fence, value, ttl, mode, details = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local hint = ARGV[5] and tonumber(ARGV[5])
if details == '+' then
  details = ARGV[2] .. ' ' .. mode .. ' ' .. value
end
local told, stood = string.find(details, '^%d+ t'), ARGV[6] == '1'
local locks, queues = {}, {}
for i = 2, 1 + (#KEYS - 1) / 2 do
  table.insert(locks, KEYS[i])
  table.insert(queues, KEYS[i + (#KEYS - 1) / 2])
end
-- A claim may wait under another token than it asks with.
local token = string.sub(details == '' and value or read(details).value, 1, 32)

-- The answer to a claim that has its locks now.
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

-- Whether no claim comes before this one. One that was told is in no queue any more, and comes before
-- those that are.
local function is_first()
  for i, lock in ipairs(locks) do
    local first = waiter_in(lock, 0)
    if unfinished or (first and first.token ~= token
      and not (told and stood and not redis.call('ZRANK', queues[i], token))) then
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
  -- The counter first: if the server refuses writes, nothing is locked.
  local counter = count(fence, hint)
  take(locks, mode, value, ttl, not admitted)
  if queued then
    leave(locks, token)
    if mode ~= 'x' then
      -- Those behind it may share the lock. What it has, it has, if they cannot be served.
      pcall(serve, locks, fence)
    end
  end
  return granted(counter)
end

if details ~= '' then
  local record = string.format('%.0f ', time()) .. details
  local lapsed = not redis.call('SET', WAITER .. token, record, 'PX', waits_for(ttl), 'GET')
  local heard = {}
  for i, lock in ipairs(locks) do
    if queued and lapsed then
      -- Its place went with its record, in all of its queues.
      redis.call('ZREM', queues[i], token)
    end
    local last = queued and redis.call('ZRANGE', queues[i], -1, -1, 'WITHSCORES')[2]
    local since = last and math.max(time(), last + 1) or time()
    local came = redis.call('ZADD', queues[i], 'NX', since, token)
    touched[lock] = true
    if came == 1 then
      local kind, holder = held_by(lock)
      if kind == 'x' and not heard[holder] then
        heard[holder] = true
        tell(holder, 'wanted ' .. lock)
      end
    end
  end
end

-- They may be free for others that wait, if the last holder's lease has ended by itself.
local counter, served
if queued and not unfinished then
  counter, served = serve(locks, fence, { token = token, value = value, hint = hint })
  if not counter and not served and not unfinished and not any_exists(queues)
    and admits_all(locks, mode) then
    -- All that waited were gone.
    counter = count(fence, hint)
    take(locks, mode, value, ttl)
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
    holder, left = held, ends_in(lock, kind, ends)
    place = redis.call('ZRANK', queues[i], token) or 0
    break
  end
end
return { holder, left, time(), unfinished and -1 or place }
