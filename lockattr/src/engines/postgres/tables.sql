-- Where lockattr keeps locks in PostgreSQL: 1, the tables.
--
-- All of it can be run any number of times, beside programs that use it.

-- The fencing counter.
create sequence if not exists lockattr_fence;

-- Locks that one claim has alone: its owner token, its value (the token again and the holder's
-- label), and when its lease ends, by this server's clock.
create table if not exists lockattr_leases (
  name bytea primary key,
  token bytea not null,
  value bytea not null,
  ends timestamptz not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Locks that several share: kind is s (shared) or p (permits).
create table if not exists lockattr_shares (
  name bytea,
  token bytea,
  kind text not null,
  value bytea not null,
  ends timestamptz not null,
  primary key (name, token)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Those who wait, in the order of their places: microseconds since 1970. Kind is x (alone), s or p, and
-- permits how many there may be. Ear is the advisory lock that the connection holds which listens
-- for this claim: it ends with that. Names are all the locks of a claim for several.
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

