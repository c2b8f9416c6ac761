-- 10: forced release, for operators.

-- Takes a lock from all its holders, and hands it off to the head of its wait queue.
--
-- Returns 1 if the lock was held, else 0; or, negative, the id of the server process whose
-- transaction holds it until it ends.
create or replace function lockattr_force_release_2(lock bytea) returns integer
language plpgsql as $$
declare
  messages text[] := '{}';
  moment timestamptz;
  ended timestamptz;
  process integer;
begin
  perform lockattr_guard_2(array[lock], false);
  moment := clock_timestamp();
  if lockattr_taken_by_a_transaction_2(array[lock]) then
    select pid into process from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted and pid <> pg_backend_pid()
      and classid::bigint << 32 | objid::bigint = lockattr_transaction_2(lock)
      and database = (select oid from pg_database where datname = current_database())
    limit 1;
    -- If the transaction has ended meanwhile, the lock is free.
    return coalesce(-process, 0);
  end if;
  ended := lockattr_ends_2(array[lock], moment);
  update lockattr_locks set token = '', value = '' where name = lock and token <> '';
  delete from lockattr_holders where name = lock;
  select result.messages into messages
  from lockattr_serve_2(array[lock], null, moment, messages) as result;
  if ended is not null then
    messages := lockattr_wake_earlier_2(lock, ended, moment, messages);
  end if;
  perform lockattr_tidy_2(array[lock]);
  perform lockattr_notify_2(messages);
  return (ended is not null)::integer;
end
$$;

