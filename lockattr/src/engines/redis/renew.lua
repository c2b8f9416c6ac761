-- Renews leases, each for its own TTL, if the claim still holds its locks.
--
-- KEYS[1]       the fencing counter, or any of the locks if the counter is not needed
-- KEYS[2 …]     for each claim, its locks
-- ARGV[4i - 3]  the number of the claim's locks
-- ARGV[4i - 2]  the claim's value
-- ARGV[4i - 1]  TTL in milliseconds
-- ARGV[4i]      the least value of the counter from now on; 0 to leave it; -1 if the claim was
--               exclusive and is now shared
--
-- Returns a string: 1 for each claim that still holds all its locks, else 0; then + if there are
-- more waiters to serve, for which the caller repeats the same call.

-- Makes a key live at least this long: a renewal may arrive after a longer one from `extend`. It
-- always writes: a server out of memory accepts this command, and then those that follow it in the
-- script.
local function lengthen(lock, ttl)
  redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ttl))
end

local results = {}
local key = 2
for i = 1, #ARGV, 4 do
  local value, ttl, least = ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local held = true
  for _ = 1, ARGV[i] do
    local lock = KEYS[key]
    key = key + 1
    local kind, holder, ends, kept = held_by(lock)
    if least < 0 and kind == 'x' and holder == value_alone(value) then
      -- PEXPIRE first: a server out of memory accepts it, and then the commands that follow.
      lengthen(lock, ttl)
      grant({ lock }, 's', value, math.max(ttl, ends_in(lock, kind, ends)))
    elseif kind == 'x' and holder == value then
      if not ends then
        lengthen(lock, ttl)
      elseif ends < millis() + ttl then
        redis.call('PEXPIRE', lock, KEPT)
        set_marked(lock, value, millis() + ttl, kept)
      end
    else
      -- The claim may have become a shared one since this request was sent: then it has the other
      -- value.
      local member = shares(lock, kind, value) and value or value_shared(value)
      if shares(lock, kind, member) then
        lengthen(lock, ttl)
        redis.call('ZADD', lock, 'GT', millis() + ttl, member)
      else
        held = false
      end
    end
  end
  if held and least > 0 and least > tonumber(redis.call('GET', KEYS[1]) or 0) then
    redis.call('SET', KEYS[1], ARGV[i + 3])
  end
  if held and least < 0 and any_exists({ queue_of(KEYS[key - 1]) }) then
    -- Waiters may share the lock too. The renewal stands even if they cannot be served.
    budget = 12
    pcall(serve, { KEYS[key - 1] }, KEYS[1])
    pcall(secure_touched)
  end
  table.insert(results, held and 1 or 0)
end
return table.concat(results) .. (unfinished and '+' or '')
