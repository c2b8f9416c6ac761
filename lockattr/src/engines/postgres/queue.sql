-- 5: the wait queue, and the hand-off.
--
-- Notifications are collected in an array: the channel of a subscriber, then the message. NOTIFY
-- makes commits wait for each other, so a release sends them after its commit (release.sql).

-- The channel of a subscriber, whose number is the first half of its claims' owner tokens.
create or replace function public.lockattr_channel_3(owner bytea) returns text
language sql immutable as $$
  select 'lockattr_schema_inbox_' || left(encode(owner, 'hex'), 16)
$$;

-- Sends notifications when the transaction commits.
create or replace function public.lockattr_notify_3(messages text[]) returns void
language plpgsql as $$
begin
  for nth in 1 .. cardinality(messages) by 2 loop
    perform pg_notify(messages[nth], messages[nth + 1]);
  end loop;
end
$$;

-- Whether the connection that acquired this advisory lock still exists. Must be called on another
-- one.
create or replace function public.lockattr_hears_3(listener bigint) returns boolean
language plpgsql as $$
begin
  return not pg_try_advisory_xact_lock_shared(listener);
end
$$;

-- How long a queue entry lasts after its process last sent a request, as `entry_lifetime` in
-- store/queue.rs. Given in milliseconds, as the TTL.
create or replace function public.lockattr_entry_lifetime_3(ttl bigint) returns interval
language sql immutable as $$
  select least(greatest(ttl, 1000), 15000) * interval '1 millisecond'
$$;

-- How long the lease of a waiter lasts from now, as `lease_of` in store/queue.rs. Its process may
-- have stopped right after its last request, so that is where the lease begins.
create or replace function public.lockattr_lease_3(ttl bigint, silent interval) returns interval
language sql immutable as $$
  select least(ttl * interval '1 millisecond', greatest(ttl, 1000) * interval '1 millisecond' - silent)
$$;

-- The milliseconds after which the lease is certainly over.
create or replace function public.lockattr_after_3(moment timestamptz, ends_at timestamptz)
returns bigint
language sql immutable as $$
  select ceil(extract(epoch from ends_at - moment) * 1000)::bigint + 1
$$;

-- Removes a claim from the wait queues of these locks.
create or replace function public.lockattr_leave_queue_3(locks bytea[], owner bytea) returns void
language plpgsql as $$
begin
  with removed as (
    delete from public.lockattr_queue where token = owner and name = any (locks) returning name
  )
  update public.lockattr_locks set waiting = greatest(waiting - 1, 0) from removed
  where lockattr_locks.name = removed.name;
end
$$;

-- The waiters of a lock expect its next lease to end at `ended`, or know of no lease if that is
-- null. If the next lease ends sooner, notifies the first waiter that listens.
create or replace function public.lockattr_wake_earlier_3(
  lock bytea, ended timestamptz, moment timestamptz, inout messages text[]
)
language plpgsql as $$
declare
  ends_at timestamptz;
  waiter record;
begin
  if not exists (select from public.lockattr_locks where name = lock and waiting > 0) then
    return;
  end if;
  ends_at := public.lockattr_ends_3(array[lock], moment);
  -- Each waiter sends a request within 5 s anyway: a third of the longest life of an entry.
  if ends_at is null or ends_at >= ended or ends_at >= moment + interval '5 seconds' then
    return;
  end if;
  for waiter in select token, listener from public.lockattr_queue where name = lock order by place loop
    if public.lockattr_hears_3(waiter.listener) then
      messages := messages || public.lockattr_channel_3(waiter.token) || format('later %s %s',
        encode(waiter.token, 'hex'), public.lockattr_after_3(moment, ends_at));
      return;
    end if;
  end loop;
end
$$;

-- Hands the locks off to the heads of their wait queues, in order of arrival. The locks' rows are
-- locked. If `asking` is one of these claims, returns its fencing token instead of notifying it.
-- Also returns whether any claim was served.
create or replace function public.lockattr_serve_3(
  locks bytea[], asking bytea, moment timestamptz,
  inout messages text[], out fencing bigint, out served boolean
)
language plpgsql as $$
declare
  lock bytea;
  passed bigint;
  claim record;
  needed bytea[];
  counter bigint;
  lasts interval;
  contended boolean;
  asked bytea[] := locks;
begin
  served := false;
  while cardinality(locks) > 0 loop
    lock := locks[cardinality(locks)];
    locks := locks[1 : cardinality(locks) - 1];
    passed := 0;
    loop
      select * into claim from public.lockattr_queue where name = lock and place > passed
      order by place limit 1;
      exit when not found;
      needed := coalesce(claim.names, array[lock]);
      if claim.token is distinct from asking
        and claim.asked + public.lockattr_entry_lifetime_3(claim.ttl) <= moment
      then
        -- Its process sends no more requests. The next waiter of each of its locks is served.
        perform public.lockattr_leave_queue_3(needed, claim.token);
        if claim.names is not null then
          locks := locks || needed;
        end if;
      elsif public.lockattr_admits_3(needed, claim.kind, claim.permits, moment) then
        perform public.lockattr_leave_queue_3(needed, claim.token);
        if claim.token = asking then
          fencing := public.lockattr_count_3();
          served := true;
          perform public.lockattr_take_3(needed, claim.token, claim.value, claim.kind,
            moment + claim.ttl * interval '1 millisecond', moment);
        elsif public.lockattr_hears_3(claim.listener) then
          served := true;
          lasts := public.lockattr_lease_3(claim.ttl, moment - claim.asked);
          perform public.lockattr_take_3(
            needed, claim.token, claim.value, claim.kind, moment + lasts, moment);
          counter := public.lockattr_count_3();
          contended := exists (
            select from public.lockattr_locks where name = any (needed) and waiting > 0);
          messages := messages || public.lockattr_channel_3(claim.token) || format(
            'granted %s %s %s %s %s', encode(claim.token, 'hex'), counter,
            (extract(epoch from moment) * 1000000)::bigint,
            contended::integer, claim.ttl - floor(extract(epoch from lasts) * 1000)::bigint);
        elsif claim.names is not null then
          -- Its process is gone, so the next waiter of each of its locks is served.
          locks := locks || needed;
        end if;
      elsif claim.names is not null
        and extract(epoch from moment) * 1000000 - claim.place < 1000000
        and public.lockattr_admits_3(array[lock], claim.kind, claim.permits, moment)
      then
        -- It waits for another lock. For up to a second, the next waiter may have this one.
        passed := claim.place;
      else
        exit;
      end if;
    end loop;
    if not lock = any (asked) then
      -- Nothing else looks at the row of a lock that only a dead claim needed.
      perform public.lockattr_tidy_3(array[lock]);
    end if;
  end loop;
end
$$;

