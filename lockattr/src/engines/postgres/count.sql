-- 3: the fencing counter.

-- The number of the next acquisition: microseconds since 2024-01-01 by the server's clock, or one
-- more than last time. A database that was restored, or a replica that had not got the last of
-- them, still counts on, and a clock that goes back does not take the counter along.
--
-- A sequence does not wait for transactions, but it cannot be set to the greater of two numbers
-- either; hence the advisory lock, which no process holds for longer than this takes.
create or replace function lockattr_count_1() returns bigint
language plpgsql as $$
declare
  -- Expressions are evaluated at once, where `perform` would be a query.
  taken boolean := false;
  number bigint;
  clock bigint;
begin
  taken := pg_advisory_lock(lockattr_number_1('')) is not null;
  number := nextval('lockattr_fence');
  clock := extract(epoch from clock_timestamp()) * 1000000 - 1704067200000000;
  if number < clock then
    number := setval('lockattr_fence', clock);
  end if;
  taken := not pg_advisory_unlock(lockattr_number_1(''));
  return number;
exception when query_canceled or others then
  if taken then
    perform pg_advisory_unlock(lockattr_number_1(''));
  end if;
  raise;
end
$$;

