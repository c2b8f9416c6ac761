-- 3: the fencing counter.
--
-- A fencing token is counter_base + nextval(counter). It is drawn once the lock's row belongs to its
-- claim, so the next holder of the lock draws a greater one. Neither sequence is ever set back.
--
-- A restored database, or a replica that had not received the last numbers, may continue from an
-- older counter. Each session raises the base when it begins, so that tokens begin at the clock:
-- microseconds since 2024. Fewer than a million acquisitions per second cannot overtake the clock,
-- so the clock is greater than every token that was ever drawn.

-- The next fencing token.
create or replace function public.lockattr_count_3() returns bigint
language sql as $$
  select pg_sequence_last_value('public.lockattr_counter_base') + nextval('public.lockattr_counter')
$$;

-- Raises the base to the clock, unless the counter is ahead of it. Called as a session begins.
create or replace function public.lockattr_raise_counter_3() returns void
language plpgsql as $$
declare
  target bigint;
begin
  -- Held until the transaction ends, so no session sets the base back.
  perform pg_advisory_xact_lock('public.lockattr_counter_base'::regclass::oid::bigint);
  target := extract(epoch from clock_timestamp()) * 1000000 - 1704067200000000
    - coalesce(pg_sequence_last_value('public.lockattr_counter'), 0);
  if target > coalesce(pg_sequence_last_value('public.lockattr_counter_base'), 0) then
    perform setval('public.lockattr_counter_base', target);
  end if;
end
$$;

