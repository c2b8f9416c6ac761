-- One row for each lock that has a holder or waiters (seat ''), whose row lock serializes all
-- changes of the lock; and one for each of several holders (seat = owner token). Times are in
-- microseconds since 2024-01-01, by the server's clock. No index besides the primary key: each
-- would cost a write for each lock that is acquired or released.
CREATE TABLE IF NOT EXISTS lockattr_v2_locks (
  id BINARY(32) NOT NULL COMMENT 'SHA-256 of the name',
  seat VARBINARY(32) NOT NULL,
  name BLOB NOT NULL,
  mode VARBINARY(1) NOT NULL COMMENT 'x exclusive, s shared, p permits, - no holder',
  token VARBINARY(32) NOT NULL COMMENT 'owner token of the holder; empty without an exclusive holder',
  value BLOB NOT NULL COMMENT 'owner token and holder label',
  listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  ends BIGINT NOT NULL COMMENT 'end of the lease; of a shared lock, not after the first end',
  waiting INT NOT NULL COMMENT 'number of waiters',
  holders INT NOT NULL,
  PRIMARY KEY (id, seat)
) ENGINE=InnoDB
;;
-- The wait queues: a row for each key of each waiting claim. Such an entry is a lease of its
-- process: it lapses after its claim's TTL (1 to 15 seconds) without a request.
CREATE TABLE IF NOT EXISTS lockattr_v2_queue (
  id BINARY(32) NOT NULL,
  place BIGINT NOT NULL COMMENT 'the time of arrival, or one more than the last place',
  token VARBINARY(32) NOT NULL,
  value BLOB NOT NULL,
  listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  mode VARBINARY(1) NOT NULL,
  permits BIGINT NOT NULL,
  ttl BIGINT NOT NULL,
  asked BIGINT NOT NULL COMMENT 'the time of the last request',
  together INT NOT NULL COMMENT 'number of keys of the claim',
  PRIMARY KEY (id, place),
  KEY (token)
) ENGINE=InnoDB
;;
-- Notifications for the listening connections, until they are read.
CREATE TABLE IF NOT EXISTS lockattr_v2_notifications (
  listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  id BIGINT UNSIGNED NOT NULL,
  subscriber VARBINARY(16) NOT NULL,
  message BLOB NOT NULL,
  PRIMARY KEY (listener, id)
) ENGINE=InnoDB
;;
-- When the next sweep is due, and after which lock this one continues: one row.
CREATE TABLE IF NOT EXISTS lockattr_v2_sweep (
  id TINYINT NOT NULL,
  due BIGINT NOT NULL,
  next VARBINARY(32) NOT NULL,
  PRIMARY KEY (id)
) ENGINE=InnoDB
;;
-- How UUID_SHORT() becomes the fencing numbers of locks that belong to sessions: one row, see
-- lockattr_v2_session_numbers.
CREATE TABLE IF NOT EXISTS lockattr_v2_session_numbers (
  id TINYINT NOT NULL,
  first BIGINT UNSIGNED NOT NULL,
  base BIGINT NOT NULL,
  last BIGINT NOT NULL,
  PRIMARY KEY (id)
) ENGINE=InnoDB
;;
-- The fencing numbers of leases. MariaDB has a sequence, which no transaction waits for. MySQL has the last
-- number of all locks whose ids begin with the same byte.
CREATE /*M! SEQUENCE IF NOT EXISTS lockattr_v2_numbers CACHE 1000 */
/*!50708 TABLE IF NOT EXISTS lockattr_v2_numbers (
  slot TINYINT UNSIGNED NOT NULL,
  last BIGINT NOT NULL,
  PRIMARY KEY (slot)
) ENGINE=InnoDB */
