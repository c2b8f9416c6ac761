-- What a lock that one claim has alone looks like, and the record of a waiter.
--
-- The lock is a string. Without waiters it is the claim's value, and the key ends with the lease: so a
-- client takes a free lock by a bare `SET NX`, and gives it back by the server's own compare-and-delete. While
-- claims wait for it, the value is marked:
--
--   queued=1 until=MILLIS kept=MILLIS VALUE
--
-- `until` is the end of the lease, by the server's clock; `kept` is the end of the queue, unless it is refreshed. The key lives until the
-- later of the two. So a lock with waiters is never absent, and no `SET NX` overtakes them. Without a VALUE the
-- mark is a reservation: no process has the lock. The 1 is the version of this format.
--
-- A value begins with the owner token: 32 digits, the first 16 of which name the claim's subscriber.

local MARK = '^queued=1 until=(%d+) kept=(%d+) ()'

local LEAST, MOST = 1000, 15000 -- milliseconds that a waiter lasts: as long as its lease, within these
local LASTS = MOST + 1000 -- milliseconds that a queue lasts at least after a question
local KEPT = 2 * LASTS -- for so long it is made to last, so that not every question has to

local call = redis.call -- looked up once

local stamp -- the server's clock: microseconds since 1970, in decimals, read when first needed

-- A hint that is further ahead than an hour does not count: a client's clock may be years ahead, and
-- a counter never goes back.
local FARTHEST_HINT = 3600000000 -- microseconds

local before -- what the counter said before this run wrote its hint there, if it has

-- In a cluster, the hash tag of the slot.
local slot = KEYS[1] ~= 'lockattr:fence' and string.match(KEYS[1], '^lockattr:fence:({%d+})$')

-- Behind this and its token it stands what a waiter wants.
local WAITER = slot and 'lockattr:waiter:' .. slot .. ':' or 'lockattr:waiter:'

