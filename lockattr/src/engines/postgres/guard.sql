-- 2: one at a time on each lock.
--
-- What a function finds out about a lock has to be so still when it acts on it; so it holds the
-- advisory lock of that name until its transaction ends. Several are taken in one order.

-- The advisory lock of a name. The table's number keeps schemas apart.
create or replace function lockattr_number_1(bytea) returns bigint
language sql stable as $$
  select hashtextextended(encode($1, 'hex') collate "C", 'lockattr_leases'::regclass::oid::bigint)
$$;

-- These locks, and all that those need who wait in the queue for one of them.
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

-- No other process does anything with these locks until the transaction ends. It must hold none of them
-- as yet, or two of them could wait for each other.
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
      -- Somebody has come meanwhile who needs others too. They have to be taken in their order: so
      -- this lets go of all.
      raise exception using errcode = 'LA001', message = 'others came first';
    exception when sqlstate 'LA001' then
      null;
    end;
  end loop;
end
$$;

-- The same for one lock, if no process in its line needs another; returns whether it is so.
create or replace function lockattr_guard_one_1(lock bytea) returns boolean
language plpgsql as $$
begin
  if exists (select from lockattr_line where name = lock and names is not null) then
    return false;
  end if;
  -- An expression, which is evaluated at once: `perform` would be a query.
  return pg_advisory_xact_lock(lockattr_number_1(lock)) is not null;
end
$$;

-- To be asked where that has said yes and somebody waits in the queue: one who came meanwhile may need
-- others. Then the client has to ask again.
create or replace function lockattr_still_one_1(lock bytea) returns void
language plpgsql as $$
begin
  if exists (select from lockattr_line where name = lock and names is not null) then
    raise exception using errcode = 'LA001', message = 'others came first';
  end if;
end
$$;

