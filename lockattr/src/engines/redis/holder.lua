-- Who has a lock; of several, one of them.
--
-- KEYS[1]  the lock
--
-- Returns { a holder's value, milliseconds until its lease ends or negative }, or nothing if no process
-- has it.

local kind, held, ends = held_by(KEYS[1])
return kind and { held, ends_in(KEYS[1], kind, ends) }
