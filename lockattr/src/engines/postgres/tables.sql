-- The locks of lockattr in PostgreSQL: 1, the tables.
--
-- The whole script can run any number of times, while programs use the tables.

-- The fencing counter.
create sequence if not exists lockattr_fence;

-- Locks with one holder: its owner token, its value (the token again and the holder's label), and
-- when its lease ends, by this server's clock.
create table if not exists lockattr_leases (
  name bytea primary key,
  token bytea not null,
  value bytea not null,
  ends timestamptz not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Locks with several holders: kind is s (shared) or p (permits).
create table if not exists lockattr_shares (
  name bytea,
  token bytea,
  kind text not null,
  value bytea not null,
  ends timestamptz not null,
  primary key (name, token)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The wait queues. Place is the order: microseconds since 1970. Kind is x (exclusive), s or p, and
-- permits the limit. Ear is the advisory lock of the connection that listens for this claim, and
-- ends with it. Names are all the locks of a claim for several.
create table if not exists lockattr_line (
  name bytea,
  place bigint,
  token bytea not null,
  value bytea not null,
  kind text not null,
  permits integer not null,
  ttl bigint not null,
  ear bigint not null,
  asked timestamptz not null,
  names bytea[],
  primary key (name, place)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

create unique index if not exists lockattr_line_token on lockattr_line (token, name);

create index if not exists lockattr_line_several on lockattr_line (name) where names is not null;

