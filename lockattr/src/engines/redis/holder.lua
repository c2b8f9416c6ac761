-- The holder of a lock; one of them if several share it.
--
-- KEYS[1]  the lock
--
-- Returns { a holder's value, milliseconds until its lease ends or negative }, or nothing if the
-- lock is free.

local kind, held, ends = held_by(KEYS[1])
return kind and { held, ends_in(KEYS[1], kind, ends) }
