-- The usual case of acquire.lua, before all that the others need is even defined: one lock, which
-- nobody has and nobody waits for.

if #KEYS == 3 and ARGV[3] == 'x' and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 then
  -- The counter first: if the server refuses writes, nothing is locked.
  local counter = count(KEYS[1], ARGV[5] and tonumber(ARGV[5]))
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
  return 2 * counter
end
