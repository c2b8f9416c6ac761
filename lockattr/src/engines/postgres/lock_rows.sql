-- 2: one transaction at a time on each lock.
--
-- What a function reads about a lock must still be true when it acts. So it locks the lock's row
-- until its transaction ends. Every statement locks the rows of several locks in the order of their
-- names, so that no two can deadlock.

-- Locks the rows of these locks, whose names are in order. With `create_rows`, each of them has a
-- row afterwards.
create or replace function public.lockattr_lock_rows_3(locks bytea[], create_rows boolean)
returns void
language plpgsql as $$
declare
  lock bytea;
begin
  foreach lock in array locks loop
    loop
      perform from public.lockattr_locks where name = lock for update;
      exit when found or not create_rows;
      insert into public.lockattr_locks values (lock, '', '', '-infinity')
      on conflict (name) do nothing;
      exit when found;
      -- Another transaction has just created the row, or has deleted it since.
    end loop;
  end loop;
end
$$;

-- These locks, and all others that the waiters of one of them need, in order.
create or replace function public.lockattr_needed_3(locks bytea[]) returns bytea[]
language plpgsql stable as $$
declare
  needed bytea[];
begin
  loop
    select array_agg(lock order by lock) into needed from (
      select unnest(locks) as lock
      union
      select unnest(names) from public.lockattr_queue where name = any (locks) and names is not null
    ) as all_of_them;
    exit when cardinality(needed) = cardinality(locks);
    locks := needed;
  end loop;
  return needed;
end
$$;

-- Locks the rows of these locks, and of all others that their waiters need. The transaction must
-- not have locked any row yet, or two transactions could deadlock.
create or replace function public.lockattr_guard_3(locks bytea[], create_rows boolean)
returns void
language plpgsql as $$
declare
  needed bytea[];
  guarded bytea[];
begin
  if cardinality(locks) = 1 then
    if not exists (select from public.lockattr_queue where name = locks[1] and names is not null) then
      -- The usual case.
      perform public.lockattr_lock_rows_3(locks, create_rows);
      if exists (select from public.lockattr_queue where name = locks[1] and names is not null) then
        -- A new waiter needs further locks. The client repeats its statement.
        raise exception using errcode = 'LA001', message = 'a claim for several locks came first';
      end if;
      return;
    end if;
  end if;
  needed := public.lockattr_needed_3(locks);
  loop
    begin
      guarded := needed;
      perform public.lockattr_lock_rows_3(guarded, create_rows);
      needed := public.lockattr_needed_3(locks);
      if needed <@ guarded then
        return;
      end if;
      -- A new waiter needs further locks. Unlock all, because they must be locked in order.
      raise exception using errcode = 'LA001', message = 'a claim for several locks came first';
    exception when sqlstate 'LA001' then
      null;
    end;
  end loop;
end
$$;

-- Removes the rows of these locks that have neither holder nor waiter.
create or replace function public.lockattr_tidy_3(locks bytea[]) returns void
language plpgsql as $$
begin
  delete from public.lockattr_locks where name = any (locks) and token = '' and waiting = 0
    and not exists (
      select from public.lockattr_holders where lockattr_holders.name = lockattr_locks.name);
end
$$;

