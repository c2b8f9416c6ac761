-- Marks an exclusive lock that the claim holds as done, and notifies its waiters to ask again.
--
-- KEYS[1]  the fencing counter
-- KEYS[2]  the lock
-- KEYS[3]  its queue
-- ARGV[1]  the claim's value
-- ARGV[2]  for how many milliseconds the lock stays held
-- ARGV[3]  what the last run returned, if it did not notify all waiters
--
-- Returns 1 if the claim held the lock or had marked it already, or 0 if not. If there may be more
-- waiters than one run notifies, returns the place of the last of them, and the caller repeats the call.

-- A longer run would block the server's other clients.
local MOST_NOTIFIED = 100

local lock, queue, value = KEYS[2], KEYS[3], ARGV[1]
local kind, holder, ends, kept = held_by(lock)
-- No later request of the claim matches this value, whatever version of lockattr sends it.
local done = value .. ' done=1'
if kind ~= 'x' or (holder ~= value and holder ~= done) then
  return 0
end
if holder == value then
  -- A server out of memory accepts PEXPIRE, and then the command that follows.
  redis.call('PEXPIRE', lock, ARGV[2])
  if ends then
    set_marked(lock, done, millis() + ARGV[2], kept)
  else
    redis.call('SET', lock, done, 'PX', ARGV[2])
  end
end
local after = ARGV[3] and '(' .. ARGV[3] or '-inf'
local waiters = redis.call('ZRANGE', queue, after, '+inf', 'BYSCORE', 'LIMIT', 0, MOST_NOTIFIED, 'WITHSCORES')
for i = 1, #waiters, 2 do
  notify(waiters[i], 'later ' .. waiters[i] .. ' 0')
end
return waiters[2 * MOST_NOTIFIED] or 1
