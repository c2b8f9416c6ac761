-- 8: locks that a client's own transaction holds until it ends.
--
-- For each lock, the transaction holds an advisory lock, whose number comes from the name. The
-- lease under which it acquired that advisory lock is released earlier.

create or replace function public.lockattr_transaction_3(bytea) returns bigint
language sql stable as $$
  select hashtextextended(encode($1, 'hex') collate "C",
    4294967296 + 'public.lockattr_locks'::regclass::oid::bigint)
$$;

-- Whether a transaction holds one of these locks.
create or replace function public.lockattr_taken_by_a_transaction_3(locks bytea[]) returns boolean
language plpgsql as $$
declare
  lock bytea;
begin
  foreach lock in array locks loop
    -- Held until this transaction ends, which is soon. A transaction that acquires the lock waits
    -- for it.
    if not pg_try_advisory_xact_lock_shared(public.lockattr_transaction_3(lock)) then
      return true;
    end if;
  end loop;
  return false;
end
$$;

