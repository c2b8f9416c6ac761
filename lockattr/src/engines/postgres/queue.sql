-- 4: the holders of a lock, its wait queue, and the hand-off.

-- Whether the holders let a claim of this kind have the locks now. Ignores the wait queue.
create or replace function lockattr_admits_1(
  locks bytea[], wants text, most integer, moment timestamptz
) returns boolean
language plpgsql as $$
begin
  if exists (select from lockattr_leases where name = any (locks) and ends > moment) then
    return false;
  elsif lockattr_taken_by_a_transaction_1(locks) then
    return false;
  elsif wants = 'x' then
    return not exists (select from lockattr_shares where name = any (locks) and ends > moment);
  end if;
  return not exists (
    select from lockattr_shares where name = any (locks) and ends > moment
    group by name having bool_or(kind <> wants) or (wants = 'p' and count(*) >= most)
  );
end
$$;

-- Whether the claim holds all these locks.
create or replace function lockattr_has_1(locks bytea[], owner bytea, moment timestamptz)
returns boolean
language plpgsql as $$
begin
  return cardinality(locks) = (
    select count(*) from (
      select from lockattr_leases where name = any (locks) and token = owner and ends > moment
      union all
      select from lockattr_shares where name = any (locks) and token = owner and ends > moment
    ) as held
  );
end
$$;

create or replace function lockattr_take_1(
  locks bytea[], owner bytea, label bytea, wants text, ends_at timestamptz, moment timestamptz
) returns void
language plpgsql as $$
begin
  if wants = 'x' then
    insert into lockattr_leases select lock, owner, label, ends_at from unnest(locks) as lock
    on conflict (name) do update
      set token = excluded.token, value = excluded.value, ends = excluded.ends;
    delete from lockattr_shares where name = any (locks);
  else
    insert into lockattr_shares select lock, owner, wants, label, ends_at from unnest(locks) as lock
    on conflict (name, token) do update set ends = excluded.ends;
    delete from lockattr_shares where name = any (locks) and ends <= moment;
    delete from lockattr_leases where name = any (locks);
  end if;
end
$$;

-- Notifies a subscriber at the commit. The first half of the owner token names its channel.
create or replace function lockattr_tell_1(owner bytea, message text) returns void
language plpgsql as $$
begin
  perform pg_notify('lockattr_inbox_' || left(encode(owner, 'hex'), 16), message);
end
$$;

-- Whether the connection that acquired this advisory lock still exists. Must be called on another
-- one.
create or replace function lockattr_hears_1(ear bigint) returns boolean
language plpgsql as $$
begin
  return not pg_try_advisory_xact_lock_shared(ear);
end
$$;

-- When the first lease on one of these locks ends.
create or replace function lockattr_ends_1(locks bytea[], moment timestamptz) returns timestamptz
language plpgsql as $$
begin
  return least(
    (select min(ends) from lockattr_leases where name = any (locks) and ends > moment),
    (select min(ends) from lockattr_shares where name = any (locks) and ends > moment),
    -- The end of a transaction is not known in advance, and a rollback notifies no process.
    case when lockattr_taken_by_a_transaction_1(locks) then moment + interval '1 second' end
  );
end
$$;

-- The milliseconds after which the lease is certainly over.
create or replace function lockattr_after_1(moment timestamptz, ends_at timestamptz) returns bigint
language plpgsql as $$
begin
  return ceil(extract(epoch from ends_at - moment) * 1000) + 1;
end
$$;

-- The waiters of a lock expect its next lease to end at `ended`, or know of no lease if that is
-- null. If the next lease ends sooner, notifies the first waiter that listens.
create or replace function lockattr_tell_sooner_1(
  lock bytea, ended timestamptz, moment timestamptz
) returns void
language plpgsql as $$
declare
  ends_at timestamptz;
  waiting record;
begin
  if not exists (select from lockattr_line where name = lock) then
    return;
  end if;
  ends_at := lockattr_ends_1(array[lock], moment);
  if ends_at is null or ends_at >= ended then
    return;
  end if;
  for waiting in select token, ear from lockattr_line where name = lock order by place loop
    if lockattr_hears_1(waiting.ear) then
      perform lockattr_tell_1(waiting.token, format('later %s %s', encode(waiting.token, 'hex'),
        lockattr_after_1(moment, ends_at)));
      return;
    end if;
  end loop;
end
$$;

-- Hands the locks off to the heads of their wait queues, in order of arrival. If `asking` is one of
-- them, returns its number instead of notifying it. Also returns whether any claim was served.
create or replace function lockattr_serve_1(
  locks bytea[], asking bytea, moment timestamptz, out number bigint, out served boolean
)
language plpgsql as $$
declare
  lock bytea;
  passed bigint;
  claim record;
  needed bytea[];
  counter bigint;
  ends_at timestamptz;
begin
  served := false;
  while cardinality(locks) > 0 loop
    lock := locks[cardinality(locks)];
    locks := locks[1 : cardinality(locks) - 1];
    passed := 0;
    loop
      select * into claim from lockattr_line where name = lock and place > passed
      order by place limit 1;
      exit when not found;
      needed := coalesce(claim.names, array[lock]);
      if lockattr_admits_1(needed, claim.kind, claim.permits, moment) then
        delete from lockattr_line where token = claim.token and name = any (needed);
        ends_at := moment + claim.ttl * interval '1 millisecond';
        if claim.token = asking then
          number := lockattr_count_1();
          served := true;
          perform lockattr_take_1(needed, claim.token, claim.value, claim.kind, ends_at, moment);
        elsif lockattr_hears_1(claim.ear) then
          served := true;
          counter := lockattr_count_1();
          perform lockattr_take_1(needed, claim.token, claim.value, claim.kind, ends_at, moment);
          perform lockattr_tell_1(claim.token, format('granted %s %s %s %s',
            encode(claim.token, 'hex'), counter,
            (extract(epoch from moment) * 1000000)::bigint,
            (exists (select from lockattr_line where name = any (needed)))::integer));
        elsif claim.names is not null then
          -- Its process is gone, so the next waiter of each of its locks is served.
          locks := locks || needed;
        end if;
      elsif claim.names is not null
        and extract(epoch from moment) * 1000000 - claim.place < 1000000
        and lockattr_admits_1(array[lock], claim.kind, claim.permits, moment)
      then
        -- It waits for another lock. For up to a second, the next waiter may have this one.
        passed := claim.place;
      else
        exit;
      end if;
    end loop;
  end loop;
end
$$;

