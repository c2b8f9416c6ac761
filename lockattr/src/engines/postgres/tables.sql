-- The locks of lockattr in PostgreSQL: 1, the tables.
--
-- The whole script can run any number of times, while programs use the tables.
--
-- A lock that is held or waited for has a row in lockattr_locks, and that row is removed with its
-- last holder or waiter. So an insert succeeds exactly where no claim comes first, and a deletion
-- where `waiting` is 0 leaves no waiter behind.

-- The fencing counter: a fencing token is the sum of both.
create sequence if not exists public.lockattr_counter;
create sequence if not exists public.lockattr_counter_base;

-- The owner token, the value (the token again and the holder's label) and the end of the lease are
-- those of an exclusive holder. Without one, the token is empty. The end is by this server's clock.
create table if not exists public.lockattr_locks (
  name bytea primary key,
  token bytea not null,
  value bytea not null,
  ends timestamptz not null,
  waiting integer not null default 0
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Each holder of a shared lock (kind s) or of a permit (kind p).
create table if not exists public.lockattr_holders (
  name bytea,
  token bytea,
  kind text not null,
  value bytea not null,
  ends timestamptz not null,
  primary key (name, token)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The wait queues. Place is the order: microseconds since 1970. Kind is x (exclusive), s or p, and
-- permits the limit. Listener is the advisory lock of the connection that listens for this claim,
-- and ends with it. Names are all the locks of a claim for several.
create table if not exists public.lockattr_queue (
  name bytea,
  place bigint,
  token bytea not null,
  value bytea not null,
  kind text not null,
  permits integer not null,
  ttl bigint not null,
  listener bigint not null,
  asked timestamptz not null,
  names bytea[],
  primary key (name, place)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- When the next sweep is due, and after which lock this one continues: one row.
create table if not exists public.lockattr_sweep (
  id integer primary key,
  due timestamptz not null,
  next bytea not null
);

create unique index if not exists lockattr_queue_token on public.lockattr_queue (token, name);

create index if not exists lockattr_queue_several on public.lockattr_queue (name)
  where names is not null;

