-- 9: renew, for claims that may share their locks. A plain update renews exclusive leases.

-- Extends leases that the claims still hold. For each claim: the number of its locks, whose names
-- follow each other in names_of_all; its owner token; its TTL in milliseconds.
--
-- Returns for each claim whether it still holds all its locks.
create or replace function public.lockattr_renew_3(
  sizes integer[], names_of_all bytea[], owners bytea[], ttls bigint[]
) returns boolean[]
language plpgsql as $$
declare
  moment timestamptz;
  results boolean[];
begin
  -- A claim that acquires a lock whose lease has expired must not see it renewed at the same time.
  perform public.lockattr_lock_rows_3(
    array(select distinct lock from unnest(names_of_all) as lock order by lock), false);
  moment := clock_timestamp();
  with claims as (
    select nth, owner, moment + ttl * interval '1 millisecond' as ends_at,
      sum(size) over (order by nth) - size as first, size
    from unnest(owners, sizes, ttls) with ordinality as claim (owner, size, ttl, nth)
  ), locks as (
    select nth, owner, ends_at, size, names_of_all[first + place] as lock
    from claims, generate_series(1, size) as place
  ), alone as (
    -- Never shortens a lease: a renewal may overtake a longer one that was sent before.
    update public.lockattr_locks set ends = greatest(ends, ends_at) from locks
    where name = lock and token = owner and ends > moment
    returning nth
  ), shared as (
    update public.lockattr_holders set ends = greatest(ends, ends_at) from locks
    where name = lock and token = owner and ends > moment
    returning nth
  ), held as (
    select nth, count(*) as locks from (select nth from alone union all select nth from shared) as it
    group by nth
  )
  select array_agg(coalesce(held.locks, 0) = claims.size order by claims.nth) into results
  from claims left join held using (nth);
  return results;
end
$$;
