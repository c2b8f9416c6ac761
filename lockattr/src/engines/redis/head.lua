-- The format of an exclusive lock, and the key of a waiter's record.
--
-- The lock is a string. Without waiters it is the claim's value, and the key expires with the
-- lease. So a client acquires a free lock with a bare `SET NX`, and releases it with the server's
-- own compare-and-delete. While claims wait, the value is marked:
--
--   queued=1 until=MILLIS kept=MILLIS VALUE
--
-- `until` is the end of the lease, by the server's clock; `kept` is the end of the queue, unless it
-- is refreshed. The key lives until the later of the two. So a lock with waiters is never absent,
-- and no `SET NX` overtakes them. Without a VALUE the mark is a reservation: no claim holds the
-- lock. The 1 is the version of this format.
--
-- A value begins with the owner token: 32 digits, the first 16 of which name the claim's subscriber.

local MARK = '^queued=1 until=(%d+) kept=(%d+) ()'

local LEAST, MOST = 1000, 15000 -- milliseconds: a waiter's record lasts for its TTL, within these bounds
local LASTS = MOST + 1000 -- milliseconds that a queue lasts at least after a request
local KEPT = 2 * LASTS -- the lifetime that is set, so that not every request must extend it

local call = redis.call -- looked up once

local stamp -- the server's clock: microseconds since 1970, as decimals, read when first needed

-- A hint more than an hour ahead is ignored: a client's clock may be years ahead, and a counter
-- never goes back.
local FARTHEST_HINT = 3600000000 -- microseconds

local before -- the counter before this run wrote its hint there, if it did

-- In a cluster, the hash tag of the slot.
local slot = KEYS[1] ~= 'lockattr:fence' and string.match(KEYS[1], '^lockattr:fence:({%d+})$')

-- The prefix of a waiter's record; its token follows.
local WAITER = slot and 'lockattr:waiter:' .. slot .. ':' or 'lockattr:waiter:'

