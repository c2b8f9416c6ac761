-- 7: release, where the plain deletion found a waiter, several holders or several locks.

-- Releases the locks that the claims still hold, removes the claims from the wait queues, and hands
-- off what has become free. For each claim: the number of its locks, whose names follow each other
-- in names_of_all; its owner token; for how many milliseconds its locks stay held.
--
-- Returns for each claim whether it held its locks.
create or replace procedure public.lockattr_release_3(
  sizes integer[], names_of_all bytea[], owners bytea[], stays bigint[], inout results boolean[]
)
language plpgsql as $$
declare
  locks bytea[];
  ended timestamptz[];
  owner bytea;
  moment timestamptz;
  ends_at timestamptz;
  channel text;
  message text;
  wakes boolean;
  messages text[] := '{}';
  first integer := 1;
  had integer;
begin
  if cardinality(names_of_all) = 1 and stays[1] = 0 then
    -- The usual case: a claim for this lock alone is the head of the queue, and its process lives.
    select ends into ends_at from public.lockattr_locks
    where name = names_of_all[1] and token = owners[1] and waiting > 0 for update;
    moment := clock_timestamp();
    if ends_at > moment
      and pg_try_advisory_xact_lock_shared(public.lockattr_transaction_3(names_of_all[1]))
    then
      with head as (
        delete from public.lockattr_queue where name = names_of_all[1] and place = (
            select place from public.lockattr_queue where name = names_of_all[1]
            order by place limit 1)
          and kind = 'x' and names is null
          and asked + public.lockattr_entry_lifetime_3(ttl) > moment
          and not pg_try_advisory_xact_lock_shared(listener)
        returning token, value, ttl, public.lockattr_lease_3(ttl, moment - asked) as lasts
      )
      update public.lockattr_locks as lock set token = head.token, value = head.value,
        ends = moment + head.lasts, waiting = waiting - 1
      from head where name = names_of_all[1]
      returning public.lockattr_channel_3(head.token), format('granted %s %s %s %s %s',
        encode(head.token, 'hex'), public.lockattr_count_3(),
        (extract(epoch from moment) * 1000000)::bigint, (waiting > 0)::integer,
        head.ttl - floor(extract(epoch from head.lasts) * 1000)::bigint),
        waiting > 0 and ends < ends_at
      into channel, message, wakes;
      if found then
        results := array[true];
        if wakes then
          -- The other waiters expect the lease to end later.
          messages := public.lockattr_wake_earlier_3(names_of_all[1], ends_at, moment, messages);
        end if;
        -- NOTIFY keeps all other commits that notify waiting until its own is on the disk. So the
        -- notification has a transaction of its own, which does not wait for the disk. If the server
        -- crashes between the two, the waiter finds its grant with its next request.
        commit;
        perform set_config('synchronous_commit', 'off', true), pg_notify(channel, message);
        if wakes then
          perform public.lockattr_notify_3(messages);
        end if;
        return;
      end if;
    end if;
    -- Unlocks the row: from here on, rows are locked in their order.
    rollback;
  end if;
  perform public.lockattr_guard_3(
    array(select distinct lock from unnest(names_of_all) as lock order by lock), false);
  moment := clock_timestamp();
  results := '{}';
  for nth in 1 .. cardinality(owners) loop
    owner := owners[nth];
    locks := names_of_all[first : first + sizes[nth] - 1];
    first := first + sizes[nth];
    ended := '{}';
    had := 0;
    for at in 1 .. cardinality(locks) loop
      ends_at := public.lockattr_release_one_3(locks[at], owner, stays[nth], moment);
      if ends_at > moment then
        had := had + 1;
      end if;
      if stays[nth] > 0 and ends_at is not null then
        -- The lease ends earlier than the waiters expect.
        messages := messages || array(
          select unnest(array[public.lockattr_channel_3(token), format('later %s %s',
            encode(token, 'hex'), stays[nth] + 1)])
          from public.lockattr_queue where name = locks[at]);
      end if;
      ended := ended || case when stays[nth] = 0 and ends_at > moment then ends_at end;
    end loop;
    perform public.lockattr_leave_queue_3(locks, owner);
    select result.messages into messages
    from public.lockattr_serve_3(locks, null, moment, messages) as result;
    for at in 1 .. cardinality(locks) loop
      if ended[at] is not null then
        messages := public.lockattr_wake_earlier_3(locks[at], ended[at], moment, messages);
      end if;
    end loop;
    perform public.lockattr_tidy_3(locks);
    results := results || (had = cardinality(locks));
  end loop;
  if cardinality(messages) > 0 then
    commit;
    perform set_config('synchronous_commit', 'off', true);
    perform public.lockattr_notify_3(messages);
  end if;
end
$$;

-- Ends the claim's lease on a lock whose row is locked, or lets it end after `stay` milliseconds.
-- Returns when the lease would have ended; null if the claim has none.
create or replace function public.lockattr_release_one_3(
  lock bytea, owner bytea, stay bigint, moment timestamptz
) returns timestamptz
language plpgsql as $$
declare
  ends_at timestamptz;
begin
  if stay = 0 then
    select ends into ends_at from public.lockattr_locks where name = lock and token = owner;
    if found then
      update public.lockattr_locks set token = '', value = '' where name = lock;
    else
      delete from public.lockattr_holders where name = lock and token = owner
      returning ends into ends_at;
    end if;
  else
    update public.lockattr_locks set ends = moment + stay * interval '1 millisecond'
    where name = lock and token = owner and ends > moment returning ends into ends_at;
    if not found then
      update public.lockattr_holders set ends = moment + stay * interval '1 millisecond'
      where name = lock and token = owner and ends > moment returning ends into ends_at;
    end if;
  end if;
  return ends_at;
end
$$;

