-- 11: the sweep.

-- Deletes what has ended: leases, marks of done keys, shared results, and queue entries of processes
-- that send no more requests. If a sweep is due, reads the next 500 locks.
--
-- Each connection for requests calls it with each heartbeat. One row says when the next sweep is due,
-- and where this one continues. It is locked during a step: so one process at a time sweeps, and the
-- others go on where one has died. A row that another transaction has locked is in use, and left to
-- the next sweep.
--
-- Returns whether to call it again soon.
create or replace function public.lockattr_sweep_3() returns boolean
language plpgsql as $$
declare
  moment timestamptz := clock_timestamp();
  after bytea;
  part bytea[];
  ended bytea[];
  more boolean;
begin
  if not exists (select from public.lockattr_sweep) then
    insert into public.lockattr_sweep values (0, '-infinity', '') on conflict do nothing;
  end if;
  select next into after from public.lockattr_sweep where due <= moment
    -- The server's clock may have gone back.
    or due > moment + interval '2 minutes' for update skip locked;
  if not found then
    return false;
  end if;
  -- What a crash of the server undoes, the next sweep repeats.
  perform set_config('synchronous_commit', 'off', true);
  part := array(
    select name from public.lockattr_locks where name > after order by name limit 500);
  more := cardinality(part) = 500;
  -- Locks their rows. What was read before may have changed, so each statement below reads again.
  ended := array(
    select name from public.lockattr_locks as lock where name = any (part) and (
      case when token <> '' then ends <= moment
        else (
          select coalesce(bool_or(holder.ends <= moment), waiting = 0)
          from public.lockattr_holders as holder where holder.name = lock.name)
      end
      or waiting <> 0 and waiting <> (
        select count(*) from public.lockattr_queue as entry
        where entry.name = lock.name and asked + public.lockattr_entry_lifetime_3(ttl) > moment))
    order by name for update skip locked);
  delete from public.lockattr_queue
  where name = any (ended) and asked + public.lockattr_entry_lifetime_3(ttl) <= moment;
  delete from public.lockattr_holders where name = any (ended) and ends <= moment;
  update public.lockattr_locks as lock set waiting = entries
  from (
    select each_one, (select count(*) from public.lockattr_queue as entry where entry.name = each_one)
    from unnest(ended) as each_one
  ) as counted (name, entries)
  where lock.name = counted.name and waiting <> entries;
  -- Waiters that are left request the lock themselves.
  delete from public.lockattr_locks as lock
  where name = any (ended) and (token = '' or ends <= moment) and waiting = 0
    and not exists (select from public.lockattr_holders as holder where holder.name = lock.name);
  update public.lockattr_sweep set
    due = case when more then moment else moment + interval '40 seconds' end,
    next = case when more then part[500] else '' end;
  return more;
end
$$;
