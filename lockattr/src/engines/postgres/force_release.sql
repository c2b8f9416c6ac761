-- 10: forced release, for operators.

-- Takes a lock from all its holders, and hands it off to the head of its wait queue.
--
-- Returns 1 if the lock was held, else 0; or, negative, the id of the server process whose
-- transaction holds it until it ends.
create or replace function public.lockattr_force_release_3(lock bytea) returns integer
language plpgsql as $$
declare
  messages text[] := '{}';
  moment timestamptz;
  ended timestamptz;
  process integer;
begin
  perform public.lockattr_guard_3(array[lock], false);
  moment := clock_timestamp();
  if public.lockattr_taken_by_a_transaction_3(array[lock]) then
    select pid into process from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted and pid <> pg_backend_pid()
      and classid::bigint << 32 | objid::bigint = public.lockattr_transaction_3(lock)
      and database = (select oid from pg_database where datname = current_database())
    limit 1;
    -- If the transaction has ended meanwhile, the lock is free.
    return coalesce(-process, 0);
  end if;
  ended := public.lockattr_ends_3(array[lock], moment);
  update public.lockattr_locks set token = '', value = '' where name = lock and token <> '';
  delete from public.lockattr_holders where name = lock;
  select result.messages into messages
  from public.lockattr_serve_3(array[lock], null, moment, messages) as result;
  if ended is not null then
    messages := public.lockattr_wake_earlier_3(lock, ended, moment, messages);
  end if;
  perform public.lockattr_tidy_3(array[lock]);
  perform public.lockattr_notify_3(messages);
  return (ended is not null)::integer;
end
$$;

