-- Makes leases run on, each for its own TTL, where the claim still has its locks.
--
-- KEYS[1]       the fencing counter; any of the locks where that is left
-- KEYS[2 …]     for each claim, its locks
-- ARGV[4i - 3]  the number of the claim's locks
-- ARGV[4i - 2]  the claim's value
-- ARGV[4i - 1]  TTL in milliseconds
-- ARGV[4i]      what the counter is at least from then on; 0 to leave it; -1 if the claim had its lock alone and
--               shares it now
--
-- Returns a string: 1 for each claim that still has all its locks, else 0; and a + behind if there are more to be
-- served, which the same call does once more.

-- Makes a key live for at least so long: a renewal may overtake a longer one that `extend` sent. It always
-- writes: a server without memory takes this command, and those that follow it in the script.
local function lengthen(lock, ttl)
  redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ttl))
end

local answers = {}
local key = 2
for i = 1, #ARGV, 4 do
  local value, ttl, least = ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local held = true
  for _ = 1, ARGV[i] do
    local lock = KEYS[key]
    key = key + 1
    local kind, holder, ends, kept = held_by(lock)
    if least < 0 and kind == 'x' and holder == value_alone(value) then
      -- First what a server without memory takes, and then it takes the others.
      lengthen(lock, ttl)
      take({ lock }, 's', value, math.max(ttl, ends_in(lock, kind, ends)))
    elseif kind == 'x' and holder == value then
      if not ends then
        lengthen(lock, ttl)
      elseif ends < millis() + ttl then
        redis.call('PEXPIRE', lock, KEPT)
        set_marked(lock, value, millis() + ttl, kept)
      end
    else
      -- The claim may share the lock since this request was sent: then its value is the other one.
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
    -- Those who wait may share it too. The lease runs on if they cannot be served.
    budget = 12
    pcall(serve, { KEYS[key - 1] }, KEYS[1])
    pcall(secure_touched)
  end
  table.insert(answers, held and 1 or 0)
end
return table.concat(answers) .. (unfinished and '+' or '')
