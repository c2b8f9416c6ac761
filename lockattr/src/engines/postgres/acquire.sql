-- 6: acquire, where the plain insert found the lock's row.

-- How many claims wait before this one in the longest of its queues, up to 64.
create or replace function public.lockattr_ahead_3(locks bytea[], owner bytea) returns bigint
language plpgsql stable as $$
begin
  return (
    select max((
      select count(*) from (
        select from public.lockattr_queue as other
        where other.name = own.name and other.place < own.place limit 64
      ) as others
    ))
    from public.lockattr_queue as own where own.token = owner and own.name = any (locks)
  );
end
$$;

-- Removes the entries of a claim that have ended: it goes to the end of its queues.
create or replace function public.lockattr_lapse_3(locks bytea[], owner bytea, moment timestamptz)
returns void
language plpgsql as $$
begin
  if exists (
    select from public.lockattr_queue where token = owner and name = any (locks)
      and asked + public.lockattr_entry_lifetime_3(ttl) <= moment
  ) then
    perform public.lockattr_leave_queue_3(locks, owner);
  end if;
end
$$;

-- Acquires free locks, or acquires again the locks that this claim already holds. If they are not
-- free and `hears` is set, adds the claim to the wait queues. All of the locks or none; their names
-- are in order.
--
-- Returns the fencing token and whether others wait. Without a token, returns a holder's value, the
-- microseconds until a lease ends, how many claims wait before this one, and the server's clock.
create or replace function public.lockattr_acquire_3(
  locks bytea[], owner bytea, label bytea, wants text, most integer, lasts bigint, hears bigint,
  out fencing bigint, out contended boolean, out holder bytea, out remains bigint, out ahead bigint,
  out clock bigint
)
language plpgsql as $$
declare
  lock bytea;
  held record;
  added boolean;
  served boolean := false;
  moment timestamptz;
  ends_at timestamptz;
  messages text[] := '{}';
begin
  if wants = 'x' and hears is not null and cardinality(locks) = 1
    and not exists (select from public.lockattr_queue where name = locks[1] and names is not null)
  then
    -- The usual case: another claim holds the lock, so this one only joins the queue.
    select * into held from public.lockattr_locks where name = locks[1] for update;
    if exists (select from public.lockattr_queue where name = locks[1] and names is not null) then
      -- It came first. The client repeats its statement, which then locks all rows in their order.
      raise exception using errcode = 'LA001', message = 'a claim for several locks came first';
    end if;
    moment := clock_timestamp();
    perform public.lockattr_lapse_3(locks, owner, moment);
    if held.token <> '' and held.token <> owner and held.ends > moment then
      clock := extract(epoch from moment) * 1000000;
      insert into public.lockattr_queue
      select locks[1], greatest(clock, 1 + coalesce((
          select place from public.lockattr_queue where name = locks[1]
          order by place desc limit 1), 0)),
        owner, label, wants, most, lasts, hears, moment, null
      on conflict (token, name) do update
        set listener = excluded.listener, asked = excluded.asked, ttl = excluded.ttl
      returning xmax = 0 into added;
      if added then
        update public.lockattr_locks set waiting = waiting + 1 where name = locks[1];
        ahead := held.waiting;
        if held.waiting = 0 then
          -- The first waiter notifies the holder.
          perform pg_notify(
            public.lockattr_channel_3(held.token), 'wanted ' || encode(locks[1], 'hex'));
        end if;
      elsif held.waiting > 0 then
        ahead := public.lockattr_ahead_3(locks, owner);
      end if;
      if ahead is not null then
        holder := held.value;
        remains := extract(epoch from held.ends - moment) * 1000000;
        -- A queue entry need not survive a crash: its process sends its requests again. So this
        -- commit does not wait for the disk, and NOTIFY keeps no other commit waiting for it.
        perform set_config('synchronous_commit', 'off', true);
        return;
      end if;
    end if;
  end if;
  perform public.lockattr_guard_3(locks, true);
  moment := clock_timestamp();
  ends_at := moment + lasts * interval '1 millisecond';

  contended := exists (select from public.lockattr_locks where name = any (locks) and waiting > 0);
  if (not contended and public.lockattr_admits_3(locks, wants, most, moment))
    or public.lockattr_has_3(locks, owner, moment)
  then
    -- The release that answered an earlier request may have left an entry.
    perform public.lockattr_leave_queue_3(locks, owner);
    perform public.lockattr_take_3(locks, owner, label, wants, ends_at, moment);
    fencing := public.lockattr_count_3();
    return;
  end if;

  if hears is not null then
    perform public.lockattr_lapse_3(locks, owner, moment);
    foreach lock in array locks loop
      insert into public.lockattr_queue
      select lock, greatest((extract(epoch from moment) * 1000000)::bigint, 1 + coalesce(
        (select place from public.lockattr_queue where name = lock
          order by place desc limit 1), 0)),
        owner, label, wants, most, lasts, hears, moment,
        case when cardinality(locks) > 1 then locks end
      on conflict (token, name) do update
        set listener = excluded.listener, asked = excluded.asked, ttl = excluded.ttl
      returning xmax = 0 into added;
      if added then
        update public.lockattr_locks set waiting = waiting + 1 where name = lock;
        -- The first waiter notifies the holder.
        messages := messages || array(
          select unnest(array[public.lockattr_channel_3(token), 'wanted ' || encode(lock, 'hex')])
          from public.lockattr_locks
          where name = lock and token <> '' and ends > moment and waiting = 1);
      else
        -- An operator has deleted the lock's row.
        update public.lockattr_locks
        set waiting = (select count(*) from public.lockattr_queue where lockattr_queue.name = lock)
        where name = lock and waiting = 0;
      end if;
    end loop;
  end if;

  -- If the last holder's lease has expired, the waiters may have the locks.
  select result.messages, result.fencing, result.served into messages, fencing, served
  from public.lockattr_serve_3(locks, owner, moment, messages) as result;
  if served then
    foreach lock in array locks loop
      messages := public.lockattr_wake_earlier_3(lock, null, moment, messages);
    end loop;
  end if;
  contended := exists (select from public.lockattr_locks where name = any (locks) and waiting > 0);
  if fencing is null and not served and not contended
    and public.lockattr_admits_3(locks, wants, most, moment)
  then
    -- All waiters were gone.
    perform public.lockattr_take_3(locks, owner, label, wants, ends_at, moment);
    fencing := public.lockattr_count_3();
  end if;
  if fencing is null then
    select value into holder from (
      select value, ends from public.lockattr_locks
      where name = any (locks) and token <> '' and ends > moment
      union all
      select value, ends from public.lockattr_holders where name = any (locks) and ends > moment
    ) as held order by ends limit 1;
    remains := extract(epoch from public.lockattr_ends_3(locks, moment) - moment) * 1000000;
    clock := extract(epoch from moment) * 1000000;
    if hears is null then
      perform public.lockattr_tidy_3(locks);
    else
      ahead := public.lockattr_ahead_3(locks, owner);
    end if;
    if not served then
      -- As above.
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;
  perform public.lockattr_notify_3(messages);
end
$$;

