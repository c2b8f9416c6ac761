-- 3: the fencing counter.

-- Returns the number of the next acquisition: microseconds since 2024-01-01 by the server's clock,
-- or one more than the last number. A restored database, or a replica that had not received the
-- last numbers, continues from the clock. A clock that goes back does not take the counter back.
--
-- A sequence does not wait for transactions, but cannot be set to the greater of two numbers. Hence
-- the advisory lock, which is held only for this function's duration.
create or replace function lockattr_count_1() returns bigint
language plpgsql as $$
declare
  -- Assignments are evaluated at once, where `perform` would be a query.
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

