-- 4: the holders of a lock.

-- Whether the holders let a claim of this kind have the locks now. Ignores the wait queue.
create or replace function public.lockattr_admits_3(
  locks bytea[], wants text, most integer, moment timestamptz
) returns boolean
language plpgsql as $$
begin
  if exists (
    select from public.lockattr_locks where name = any (locks) and token <> '' and ends > moment
  ) then
    return false;
  elsif public.lockattr_taken_by_a_transaction_3(locks) then
    return false;
  elsif wants = 'x' then
    return not exists (
      select from public.lockattr_holders where name = any (locks) and ends > moment);
  end if;
  return not exists (
    select from public.lockattr_holders where name = any (locks) and ends > moment
    group by name having bool_or(kind <> wants) or (wants = 'p' and count(*) >= most)
  );
end
$$;

-- Whether the claim holds all these locks.
create or replace function public.lockattr_has_3(locks bytea[], owner bytea, moment timestamptz)
returns boolean
language plpgsql as $$
begin
  return cardinality(locks) = (
    select count(*) from (
      select from public.lockattr_locks where name = any (locks) and token = owner and ends > moment
      union all
      select from public.lockattr_holders
      where name = any (locks) and token = owner and ends > moment
    ) as held
  );
end
$$;

-- Gives the locks to a claim. Their rows exist and are locked. Never shortens a lease that the
-- claim has already: a late request may arrive after a longer renewal.
create or replace function public.lockattr_take_3(
  locks bytea[], owner bytea, label bytea, wants text, ends_at timestamptz, moment timestamptz
) returns void
language plpgsql as $$
begin
  if wants = 'x' then
    update public.lockattr_locks set token = owner, value = label,
      ends = case when token = owner then greatest(ends, ends_at) else ends_at end
    where name = any (locks);
    delete from public.lockattr_holders where name = any (locks);
  else
    insert into public.lockattr_holders
    select lock, owner, wants, label, ends_at from unnest(locks) as lock
    on conflict (name, token) do update set ends = greatest(lockattr_holders.ends, excluded.ends);
    delete from public.lockattr_holders where name = any (locks) and ends <= moment;
    update public.lockattr_locks set token = '', value = '' where name = any (locks) and token <> '';
  end if;
end
$$;

-- When the first lease on one of these locks ends.
create or replace function public.lockattr_ends_3(locks bytea[], moment timestamptz)
returns timestamptz
language plpgsql as $$
begin
  return least(
    (select min(ends) from public.lockattr_locks
      where name = any (locks) and token <> '' and ends > moment),
    (select min(ends) from public.lockattr_holders where name = any (locks) and ends > moment),
    -- The end of a transaction is not known in advance, and a rollback notifies no process.
    case when public.lockattr_taken_by_a_transaction_3(locks) then moment + interval '1 second' end
  );
end
$$;

