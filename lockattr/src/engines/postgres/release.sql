-- 6: release.

-- Releases the locks that the claims still hold, removes the claims from the wait queues, and hands
-- off what has become free. For each claim: the number of its locks, whose names follow each other
-- in names_of_all; its owner token; for how many milliseconds its locks stay held.
--
-- Returns for each claim whether it held its locks.
create or replace function lockattr_release_1(
  sizes integer[], names_of_all bytea[], owners bytea[], stays bigint[]
) returns boolean[]
language plpgsql as $$
declare
  results boolean[] := '{}';
  locks bytea[];
  ended timestamptz[];
  owner bytea;
  moment timestamptz;
  ends_at timestamptz;
  lock bytea;
  waiting record;
  first integer := 1;
  had integer;
begin
  if cardinality(names_of_all) = 1 and lockattr_guard_one_1(names_of_all[1]) then
    if stays[1] = 0 then
      -- The usual case.
      delete from lockattr_leases where name = names_of_all[1] and token = owners[1]
        and not exists (select from lockattr_line where name = names_of_all[1])
      returning ends into ends_at;
      if found then
        if random() < 0.01 then
          perform lockattr_sweep_1();
        end if;
        return array[ends_at > clock_timestamp()];
      end if;
    end if;
    perform lockattr_still_one_1(names_of_all[1]);
  else
    perform lockattr_guard_1(names_of_all);
  end if;
  moment := clock_timestamp();

  for nth in 1 .. cardinality(owners) loop
    owner := owners[nth];
    locks := names_of_all[first : first + sizes[nth] - 1];
    first := first + sizes[nth];
    ended := '{}';
    had := 0;
    foreach lock in array locks loop
      ends_at := null;
      if stays[nth] = 0 then
        delete from lockattr_leases where name = lock and token = owner returning ends into ends_at;
        if not found then
          delete from lockattr_shares where name = lock and token = owner returning ends into ends_at;
        end if;
      else
        update lockattr_leases set ends = moment + stays[nth] * interval '1 millisecond'
        where name = lock and token = owner and ends > moment returning ends into ends_at;
        if not found then
          update lockattr_shares set ends = moment + stays[nth] * interval '1 millisecond'
          where name = lock and token = owner and ends > moment returning ends into ends_at;
        end if;
        if ends_at is not null then
          -- The lease ends earlier than the waiters expect.
          for waiting in select token from lockattr_line where name = lock loop
            perform lockattr_tell_1(waiting.token, format('later %s %s',
              encode(waiting.token, 'hex'), lockattr_after_1(moment, ends_at)));
          end loop;
        end if;
      end if;
      if ends_at > moment then
        had := had + 1;
      end if;
      ended := ended || case when stays[nth] = 0 and ends_at > moment then ends_at end;
    end loop;
    delete from lockattr_line where token = owner and name = any (locks);
    perform lockattr_serve_1(locks, null, moment);
    for lock_nth in 1 .. cardinality(locks) loop
      if ended[lock_nth] is not null then
        perform lockattr_tell_sooner_1(locks[lock_nth], ended[lock_nth], moment);
      end if;
    end loop;
    results := results || (had = cardinality(locks));
  end loop;
  if random() < 0.01 then
    perform lockattr_sweep_1();
  end if;
  return results;
end
$$;

-- Deletes expired leases of locks that no client requests; a request replaces the expired lease.
-- Runs in one of a hundred releases, on a few pages, and skips locked rows.
create or replace function lockattr_sweep_1() returns void
language plpgsql as $$
declare
  earliest timestamptz := clock_timestamp() - interval '1 minute';
  pages tid[];
begin
  pages := lockattr_pages_1('lockattr_leases');
  delete from lockattr_leases where ctid = any (array(
    select ctid from lockattr_leases
    where ctid >= pages[1] and ctid < pages[2] and ends < earliest
    for update skip locked
  ));
  pages := lockattr_pages_1('lockattr_shares');
  delete from lockattr_shares where ctid = any (array(
    select ctid from lockattr_shares
    where ctid >= pages[1] and ctid < pages[2] and ends < earliest
    for update skip locked
  ));
  pages := lockattr_pages_1('lockattr_line');
  delete from lockattr_line where ctid = any (array(
    select ctid from lockattr_line
    where ctid >= pages[1] and ctid < pages[2] and asked < earliest and not lockattr_hears_1(ear)
    for update skip locked
  ));
end
$$;

-- The beginning and the end of eight random adjacent pages of a table.
create or replace function lockattr_pages_1(of_table regclass) returns tid[]
language plpgsql as $$
declare
  pages bigint := pg_relation_size(of_table) / current_setting('block_size')::bigint;
  -- So that the first and the last page are as likely as any other.
  first bigint := floor(random() * (pages + 7)) - 7;
begin
  return array[format('(%s,0)', greatest(first, 0))::tid, format('(%s,0)', first + 8)::tid];
end
$$;

