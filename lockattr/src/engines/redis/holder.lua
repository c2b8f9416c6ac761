-- The holder of a lock; one of them if several share it.
--
-- KEYS[1]  the lock
--
-- Returns { a holder's value, milliseconds until its lease ends or negative }, nothing if the lock is
-- free, or -1 if the key is not a lock.

local kind, held, ends = held_by(KEYS[1])
if kind == '?' then
  return -1
end
-- One of ours may be the note of a shared result, which has up to 200 KiB.
return kind and { is_ours(held) and held or shown(held), ends_in(KEYS[1], kind, ends) }
