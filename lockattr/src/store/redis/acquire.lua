-- Takes locks that are free, or takes again those that this claim has already; gets in line for
-- them if they are not and an entry is given. All of them or none.
--
-- KEYS[1]      the fencing counter, one for the whole server or, in a cluster, the slot
-- KEYS[2 …]    the locks, and then the line of each
-- ARGV[1]      the claim's value: owner token and holder label
-- ARGV[2]      TTL in milliseconds
-- ARGV[3]      its mode
-- ARGV[4]      its entry in the line; + for the usual, of one lock; empty to ask only once
-- ARGV[5]      what counts instead of the server's clock; none or empty if that does
-- ARGV[6]      1 if it stood in line before, to be told: where it does not any more, it was
--
-- Returns twice the number of this acquisition, or, if others wait, the number and the word "wanted":
-- both are exact below 2^53, where an odd number is not. Or
-- { a holder's value, milliseconds until a lease ends or negative, the server's time in
-- microseconds }.

local fence, value, ttl, mode, entry = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local hint = ARGV[5] and tonumber(ARGV[5])
if entry == '+' then
  entry = ARGV[2] .. ' ' .. mode .. ' ' .. value
end
local told, stood = string.find(entry, '^%d+ t'), ARGV[6] == '1'
local locks = {}
for i = 2, 1 + (#KEYS - 1) / 2 do
  table.insert(locks, KEYS[i])
end

local function granted(counter, wanted)
  return wanted and string.format('%.0f wanted', counter) or 2 * counter
end

local function has_all()
  for _, lock in ipairs(locks) do
    if not has(lock, value) then
      return false
    end
  end
  return true
end

-- Who has been told is not in line any more, and comes before those who are.
local function has_its_turn()
  for _, lock in ipairs(locks) do
    local rank = redis.call('ZRANK', line_of(lock), entry)
    if rank ~= 0 and (rank or not stood) and is_wanted({ lock }) then
      return false
    end
  end
  return true
end

local wanted = is_wanted(locks)
if ((not wanted or (told and has_its_turn())) and admits_all(locks, mode)) or has_all() then
  -- The counter first: if the server refuses writes, nothing is locked.
  local counter = count(fence, hint)
  take(locks, mode, value, ttl)
  if told then
    take_out(locks, entry)
    wanted = is_wanted(locks)
  end
  return granted(counter, wanted)
end

if entry ~= '' then
  for _, lock in ipairs(locks) do
    local line = line_of(lock)
    local last = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')
    local since = last[2] and math.max(time(), last[2] + 1) or time()
    local came = redis.call('ZADD', line, 'NX', since, entry)
    redis.call('PEXPIRE', line, LINE_LASTS)
    local kind, holder = held_by(lock)
    if came == 1 and kind == 'x' then
      tell(holder, 'wanted ' .. lock)
    end
  end
end

-- They may be free for the line, if the last holder's lease has ended by itself.
local asking = { entry = entry, value = value, hint = hint }
local counter, served = serve(locks, fence, asking)
for _, lock in ipairs(served and locks or {}) do
  tell_sooner(lock, -1)
end
wanted = is_wanted(locks)
if not counter and not served and not wanted and admits_all(locks, mode) then
  -- All who stood in line were gone.
  counter = count(fence, hint)
  take(locks, mode, value, ttl)
end
if counter then
  return granted(counter, wanted)
end

local holder, left = '', -1
for _, lock in ipairs(locks) do
  local kind, held = held_by(lock)
  if kind then
    local ends = ends_in(lock, kind)
    if holder == '' then
      holder = held
    end
    if ends >= 0 and (left < 0 or ends < left) then
      left = ends
    end
  end
end
return { holder, left, time() }
