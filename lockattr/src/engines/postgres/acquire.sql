-- 5: acquire.

-- Acquires free locks, or acquires again the locks that this claim already holds. If they are not
-- free and `hears` is set, adds the claim to the wait queues. All of the locks or none.
--
-- Returns the fencing number and whether others wait. Without a number, returns a holder's value,
-- the microseconds until a lease ends, and the server's clock.
create or replace function lockattr_acquire_1(
  locks bytea[], owner bytea, label bytea, wants text, most integer, lasts bigint, hears bigint,
  out number bigint, out wanted boolean, out holder bytea, out remains bigint, out clock bigint
)
language plpgsql as $$
declare
  lock bytea;
  added boolean;
  served boolean := false;
  moment timestamptz;
  ends_at timestamptz;
begin
  if cardinality(locks) = 1 and lockattr_guard_one_1(locks[1]) then
    moment := clock_timestamp();
    ends_at := moment + lasts * interval '1 millisecond';
    if wants = 'x' then
      -- The usual case.
      insert into lockattr_leases as taken select locks[1], owner, label, ends_at
      where not exists (select from lockattr_line where name = locks[1])
        and not exists (select from lockattr_shares where name = locks[1])
        and not lockattr_taken_by_a_transaction_1(locks)
      on conflict (name) do update
        set token = excluded.token, value = excluded.value, ends = excluded.ends
        where taken.ends <= moment or taken.token = excluded.token;
      if found then
        number := lockattr_count_1();
        wanted := false;
        return;
      end if;
    end if;
    perform lockattr_still_one_1(locks[1]);
  else
    perform lockattr_guard_1(locks);
  end if;
  moment := clock_timestamp();
  ends_at := moment + lasts * interval '1 millisecond';

  wanted := exists (select from lockattr_line where name = any (locks));
  if (not wanted and lockattr_admits_1(locks, wants, most, moment))
    or lockattr_has_1(locks, owner, moment)
  then
    number := lockattr_count_1();
    perform lockattr_take_1(locks, owner, label, wants, ends_at, moment);
    return;
  end if;

  if hears is not null then
    foreach lock in array locks loop
      insert into lockattr_line
      select lock, greatest((extract(epoch from moment) * 1000000)::bigint, 1 + coalesce(
        (select place from lockattr_line where name = lock order by place desc limit 1), 0)),
        owner, label, wants, most, lasts, hears, moment,
        case when cardinality(locks) > 1 then locks end
      on conflict (token, name) do update set ear = excluded.ear, asked = excluded.asked
      returning xmax = 0 into added;
      if added then
        perform lockattr_tell_1(token, 'wanted ' || encode(lock, 'hex'))
        from lockattr_leases where name = lock and ends > moment;
      end if;
    end loop;
  end if;

  -- If the last holder's lease has expired, the waiters may have the locks.
  select served_now.number, served_now.served into number, served
  from lockattr_serve_1(locks, owner, moment) as served_now;
  if served then
    foreach lock in array locks loop
      perform lockattr_tell_sooner_1(lock, null, moment);
    end loop;
  end if;
  wanted := exists (select from lockattr_line where name = any (locks));
  if number is null and not served and not wanted
    and lockattr_admits_1(locks, wants, most, moment)
  then
    -- All waiters were gone.
    number := lockattr_count_1();
    perform lockattr_take_1(locks, owner, label, wants, ends_at, moment);
  end if;
  if number is not null then
    return;
  end if;

  select value into holder from (
    select value, ends from lockattr_leases where name = any (locks) and ends > moment
    union all
    select value, ends from lockattr_shares where name = any (locks) and ends > moment
  ) as held order by ends limit 1;
  remains := extract(epoch from lockattr_ends_1(locks, moment) - moment) * 1000000;
  clock := extract(epoch from moment) * 1000000;
end
$$;

