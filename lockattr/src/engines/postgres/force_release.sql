-- 9: forced release, for operators.

-- Takes a lock from all its holders, and hands it off to the head of its wait queue.
--
-- Returns 1 if the lock was held, else 0; or, negative, the id of the server process whose
-- transaction holds it until it ends.
create or replace function lockattr_evict_1(lock bytea) returns integer
language plpgsql as $$
declare
  moment timestamptz;
  ended timestamptz;
  process integer;
begin
  perform lockattr_guard_1(array[lock]);
  moment := clock_timestamp();
  if lockattr_taken_by_a_transaction_1(array[lock]) then
    select pid into process from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted and pid <> pg_backend_pid()
      and classid::bigint << 32 | objid::bigint = lockattr_transaction_1(lock)
      and database = (select oid from pg_database where datname = current_database())
    limit 1;
    -- If the transaction has ended meanwhile, the lock is free.
    return coalesce(-process, 0);
  end if;
  ended := lockattr_ends_1(array[lock], moment);
  delete from lockattr_leases where name = lock;
  delete from lockattr_shares where name = lock;
  perform lockattr_serve_1(array[lock], null, moment);
  if ended is not null then
    perform lockattr_tell_sooner_1(lock, ended, moment);
  end if;
  return (ended is not null)::integer;
end
$$;

