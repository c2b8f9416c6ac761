-- 10: done keys.
--
-- The token of a done lock is `done` and then that of the claim. It is longer than any claim's, so no
-- later request of the claim matches it, whatever version of lockattr sends it.

-- Marks a lock that the claim holds as done: it stays held for `lasts` milliseconds, and all its
-- waiters are notified to ask again.
--
-- Returns whether the claim held the lock, or had marked it already.
create or replace function public.lockattr_mark_done_3(lock bytea, owner bytea, lasts bigint)
returns boolean
language plpgsql as $$
declare
  held record;
  moment timestamptz;
  marked bytea := '\x646f6e65'::bytea || owner;
begin
  select token, ends into held from public.lockattr_locks where name = lock for update;
  moment := clock_timestamp();
  if not found or held.ends <= moment or held.token not in (owner, marked) then
    return false;
  end if;
  if held.token = owner then
    update public.lockattr_locks set token = marked, value = value || '\x20646f6e653d31'::bytea,
      ends = moment + lasts * interval '1 millisecond'
    where name = lock;
    perform pg_notify(public.lockattr_channel_3(token), format('later %s 0', encode(token, 'hex')))
    from public.lockattr_queue where name = lock;
  end if;
  return true;
end
$$;

