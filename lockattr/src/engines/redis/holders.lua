-- Functions that read and grant locks of any kind, for all scripts but their fast paths.
--
-- A lock that claims share is a sorted set of their values, scored by the millisecond in which each
-- lease ends. It lives until the last lease ends, and, while claims wait, at least as long as its
-- queue.

local function millis()
  return math.floor(time() / 1000)
end

-- Returns the queue of a lock, in the lock's own hash slot. A name without a hash tag becomes the
-- tag, unless it contains a closing brace, which would end the tag. Then, in a cluster, the tag is
-- that of the slot's counter.
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

-- The locks that this run has changed, or whose queues it has changed.
local touched = {}

local function is_string(reply)
  return type(reply) == 'string'
end

-- Returns nothing for a free lock; else the kind of hold, a value, and the two ends of a mark if
-- there is one. The kind is x (exclusive), s (shared), p (permits), or ? (the key belongs to
-- another program). Expired leases are skipped, not removed: a read must not make a lock with
-- waiters absent.
local function held_by(lock)
  -- pcall, because the key may not be a string. Any other error is raised.
  local held = redis.pcall('GET', lock)
  if not held then
    return nil
  elseif is_string(held) then
    local value, ends, kept = unmarked(held)
    if ends and ends <= millis() then
      return nil
    end
    return 'x', value, ends, kept
  elseif not string.find(held.err, 'WRONGTYPE', 1, true) then
    redis.call('GET', lock)
  end
  local alive = string.format('(%.0f', millis())
  local sharers = redis.pcall('ZRANGE', lock, alive, '+inf', 'BYSCORE', 'LIMIT', 0, 1)
  local first = sharers[1] or (not sharers.err and redis.call('ZRANGE', lock, 0, 0)[1])
  local kind = first and string.match(first, '^%x+ mode=([sp])')
  if not kind then
    return '?', ''
  end
  if sharers[1] then
    return kind, first
  end
  return nil
end

-- Whether the claim shares the lock and its lease has not expired.
local function shares(lock, kind, value)
  local ends = (kind == 's' or kind == 'p') and redis.call('ZSCORE', lock, value)
  return ends and tonumber(ends) > millis()
end

-- An exclusive claim may become a shared one, and its value changes. Each of these two returns one
-- value from the other.
local function value_alone(value)
  return string.sub(value, 33, 45) == ' mode=shared ' and string.sub(value, 1, 32) .. string.sub(value, 45)
end

local function value_shared(value)
  return string.sub(value, 1, 32) .. ' mode=shared' .. string.sub(value, 33)
end

-- Returns how many claims share a lock.
local function sharers_of(lock)
  return redis.call('ZCOUNT', lock, string.format('(%.0f', millis()), '+inf')
end

-- Whether a claim of this mode could hold the lock now, apart from earlier waiters.
local function admits(lock, mode)
  local kind = held_by(lock)
  if not kind then
    return true
  elseif mode == 's' then
    return kind == 's'
  end
  local permits = string.match(mode, '^p(%d+)$')
  if not permits or kind ~= 'p' then
    return false
  end
  return sharers_of(lock) < tonumber(permits)
end

-- Whether any of these keys exists.
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

-- Whether the claim holds the lock.
local function has(lock, value)
  local kind, held = held_by(lock)
  if kind == 'x' then
    return held == value
  end
  return shares(lock, kind, value)
end

-- Returns the milliseconds until the first lease on a lock ends, from the kind and end that
-- `held_by` returned; negative if none ends.
local function ends_in(lock, kind, ends)
  if ends then
    return ends - millis()
  elseif kind == 's' or kind == 'p' then
    local alive = string.format('(%.0f', millis())
    local first = redis.call('ZRANGE', lock, alive, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    return first[2] - millis()
  end
  return kind and redis.call('PTTL', lock) or -1
end

-- Makes a shared lock expire with the last of its leases.
local function end_with_the_last(lock)
  local last = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIRE', lock, last[2] - millis())
  end
end

-- Grants the locks to a claim. They are free, or the claim has them already. An extended lease is
-- not shortened: the request may arrive late, from a connection that was given up.
local function grant(locks, mode, value, ttl, has_them)
  for _, lock in ipairs(locks) do
    touched[lock] = true
    if mode == 'x' then
      local left = ttl
      if has_them then
        local kind, _, ends = held_by(lock)
        left = math.max(ttl, ends_in(lock, kind, ends))
      end
      redis.call('SET', lock, value, 'PX', left)
    else
      local added = redis.pcall('ZADD', lock, 'GT', millis() + ttl, value)
      if type(added) == 'table' then
        -- The key is a string: a reservation, or an expired lease. The ZADD below raises any other
        -- error.
        if string.find(added.err, 'WRONGTYPE', 1, true) then
          redis.call('DEL', lock)
        end
        redis.call('ZADD', lock, millis() + ttl, value)
      else
        redis.call('ZREMRANGEBYSCORE', lock, '-inf', millis())
      end
      end_with_the_last(lock)
    end
  end
end

-- Marks a lock that has waiters, and makes it live as long as its queue. Without waiters, removes
-- the mark.
local function secure(lock)
  local queue, held = queue_of(lock), redis.pcall('GET', lock)
  local value, ends = '', 0
  if is_string(held) then
    value, ends = unmarked(held)
  end
  if redis.call('EXISTS', queue) == 0 then
    if not is_string(held) then
      -- Its TTL may be that of the queue.
      local last = held and redis.pcall('ZRANGE', lock, -1, -1, 'WITHSCORES') or {}
      if last[1] and string.find(last[1], '^%x+ mode=[sp]') then
        redis.call('PEXPIRE', lock, last[2] - millis())
      end
    elseif not ends then
      return
    elseif value == '' or ends <= millis() then
      redis.call('DEL', lock)
    else
      redis.call('SET', lock, value, 'PX', ends - millis())
    end
    return
  end
  redis.call('PEXPIRE', queue, KEPT)
  if not held or is_string(held) then
    if not ends then
      ends = is_ours(value) and millis() + redis.call('PTTL', lock) or 0
      if ends < millis() then
        -- Another program holds the lock, or changed its TTL.
        return
      end
    end
    if ends <= millis() then
      value, ends = '', 0
    end
    set_marked(lock, value, ends, digits(millis() + KEPT))
  else
    local last = redis.pcall('ZRANGE', lock, -1, -1, 'WITHSCORES')
    if last[1] and string.find(last[1], '^%x+ mode=[sp]') then
      redis.call('PEXPIRE', lock, math.max(last[2] - millis(), KEPT))
    end
  end
end

-- Marks every lock with waiters that this run has changed. Each script calls this last.
local function secure_touched()
  for lock in pairs(touched) do
    secure(lock)
  end
end

