-- 2: one transaction at a time on each lock.
--
-- What a function reads about a lock must still be true when it acts. So it holds the advisory lock
-- of that name until its transaction ends. Several advisory locks are acquired in one order.

-- The advisory lock of a name. The table's number keeps schemas apart.
create or replace function lockattr_number_1(bytea) returns bigint
language sql stable as $$
  select hashtextextended(encode($1, 'hex') collate "C", 'lockattr_leases'::regclass::oid::bigint)
$$;

-- These locks, and all others that the waiters of one of them need.
create or replace function lockattr_needed_1(locks bytea[]) returns bytea[]
language plpgsql stable as $$
declare
  needed bytea[];
begin
  loop
    select array_agg(lock) into needed from (
      select unnest(locks) as lock
      union
      select unnest(names) from lockattr_line where name = any (locks) and names is not null
    ) as all_of_them;
    exit when cardinality(needed) = cardinality(locks);
    locks := needed;
  end loop;
  return needed;
end
$$;

-- Excludes other transactions from these locks until this one ends. It must hold none of them yet,
-- or two transactions could deadlock.
create or replace function lockattr_guard_1(locks bytea[]) returns void
language plpgsql as $$
declare
  needed bytea[] := lockattr_needed_1(locks);
  guarded bytea[];
  number bigint;
begin
  loop
    begin
      guarded := needed;
      for number in
        select distinct lockattr_number_1(lock) from unnest(guarded) as lock order by 1
      loop
        perform pg_advisory_xact_lock(number);
      end loop;
      needed := lockattr_needed_1(locks);
      if needed <@ guarded then
        return;
      end if;
      -- A new waiter needs further locks. Release all, because they must be acquired in order.
      raise exception using errcode = 'LA001', message = 'others came first';
    exception when sqlstate 'LA001' then
      null;
    end;
  end loop;
end
$$;

-- The same for one lock, if none of its waiters needs another; returns whether that is so.
create or replace function lockattr_guard_one_1(lock bytea) returns boolean
language plpgsql as $$
begin
  if exists (select from lockattr_line where name = lock and names is not null) then
    return false;
  end if;
  -- An expression, which is evaluated at once; `perform` would be a query.
  return pg_advisory_xact_lock(lockattr_number_1(lock)) is not null;
end
$$;

-- Called after lockattr_guard_one_1 returned true, if the lock has waiters: a new one may need
-- further locks. Then the client has to repeat its statement.
create or replace function lockattr_still_one_1(lock bytea) returns void
language plpgsql as $$
begin
  if exists (select from lockattr_line where name = lock and names is not null) then
    raise exception using errcode = 'LA001', message = 'others came first';
  end if;
end
$$;

