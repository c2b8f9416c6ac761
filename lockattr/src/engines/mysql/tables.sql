-- One row for each lock that has a holder or waiters (seat ''), whose row lock serializes all
-- changes of the lock; and one for each of several holders (seat = owner token). Times are in
-- microseconds since 2024-01-01, by the server's clock.
CREATE TABLE IF NOT EXISTS lockattr_locks (
  id BINARY(32) NOT NULL COMMENT 'SHA-256 of the name',
  seat VARBINARY(32) NOT NULL,
  name VARBINARY(8192) NOT NULL,
  mode VARBINARY(1) NOT NULL COMMENT 'x exclusive, s shared, p permits, - no holder',
  token VARBINARY(32) NOT NULL COMMENT 'owner token of the holder; empty without an exclusive holder',
  value VARBINARY(8192) NOT NULL COMMENT 'owner token and holder label',
  ear VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  ends BIGINT NOT NULL COMMENT 'end of the lease; of a shared lock, not after the first end',
  waiting INT NOT NULL COMMENT 'number of waiters',
  holders INT NOT NULL,
  PRIMARY KEY (id, seat),
  KEY (ends)
) ENGINE=InnoDB
;;
-- The wait queues: a row for each key of each waiting claim.
CREATE TABLE IF NOT EXISTS lockattr_line (
  id BINARY(32) NOT NULL,
  came BIGINT NOT NULL,
  token VARBINARY(32) NOT NULL,
  value VARBINARY(8192) NOT NULL,
  ear VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  mode VARBINARY(1) NOT NULL,
  permits BIGINT NOT NULL,
  ttl BIGINT NOT NULL,
  together INT NOT NULL COMMENT 'number of keys of the claim',
  PRIMARY KEY (id, came),
  KEY (token)
) ENGINE=InnoDB
;;
-- Messages for the listening connections, until they are read.
CREATE TABLE IF NOT EXISTS lockattr_news (
  id BIGINT NOT NULL AUTO_INCREMENT,
  ear VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  inbox VARBINARY(16) NOT NULL,
  message VARBINARY(8300) NOT NULL,
  taken TINYINT NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  KEY (ear)
) ENGINE=InnoDB
;;
-- The last fencing number of all locks whose ids begin with the same byte.
CREATE TABLE IF NOT EXISTS lockattr_fence (
  slot TINYINT UNSIGNED NOT NULL,
  last BIGINT NOT NULL,
  PRIMARY KEY (slot)
) ENGINE=InnoDB
