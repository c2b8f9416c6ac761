-- The usual case of release.lua, before all that the others need is even defined: one lock, which
-- the claim has, and nobody waits for.

if #KEYS == 3 and ARGV[3] == '' and ARGV[4] == '0' and redis.call('EXISTS', KEYS[3]) == 0
  and redis.pcall('GET', KEYS[2]) == ARGV[2] then
  return tostring(redis.call('DEL', KEYS[2]))
end
