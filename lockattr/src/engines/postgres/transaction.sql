-- 7: locks that a transaction of somebody else's has, until it ends.
--
-- It holds an advisory lock of its own for each, whose number comes from the name; the lease by which it
-- got there is given back before that.

create or replace function lockattr_transaction_1(bytea) returns bigint
language sql stable as $$
  select hashtextextended(encode($1, 'hex') collate "C",
    4294967296 + 'lockattr_leases'::regclass::oid::bigint)
$$;

-- Whether one of these locks is a transaction's.
create or replace function lockattr_taken_by_a_transaction_1(locks bytea[]) returns boolean
language plpgsql as $$
declare
  lock bytea;
begin
  foreach lock in array locks loop
    -- Until this transaction ends, which is soon; one that wants the lock waits for that.
    if not pg_try_advisory_xact_lock_shared(lockattr_transaction_1(lock)) then
      return true;
    end if;
  end loop;
  return false;
end
$$;

