-- Deletes what has ended: leases, marks of done keys, queue entries of processes that send no more
-- requests, and messages for processes that are gone. If a sweep is due, reads the next 500 locks, and
-- changes the first 100 of those that need it.
--
-- Each connection calls it with each heartbeat. One row says when the next sweep is due, and where this
-- one continues. It is locked during a step: so one process at a time sweeps, and the others go on
-- where one has died. A row that another transaction has locked is in use, and left to the next sweep.
--
-- Returns whether to call it again soon.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_sweep_2()
  SQL SECURITY INVOKER
main: BEGIN
  DECLARE v_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
  DECLARE v_ends BIGINT;
  DECLARE v_from, v_last VARBINARY(32);
  DECLARE v_id BINARY(32);
  DECLARE v_ids LONGBLOB;
  DECLARE v_mode VARBINARY(1);
  DECLARE v_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_count, v_waiting, v_more INT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  IF CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') THEN
    SELECT 0;
    LEAVE main;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM lockattr_v2_sweep) THEN
    INSERT IGNORE INTO lockattr_v2_sweep (id, due, next) VALUES (0, 0, '');
  END IF;
  START TRANSACTION;
  SELECT next INTO v_from FROM lockattr_v2_sweep WHERE id = 0
    -- The server's clock may have gone back.
    AND (due <= v_now OR due > v_now + 120000000) FOR UPDATE SKIP LOCKED;
  IF v_from IS NULL THEN
    COMMIT;
    SELECT 0;
    LEAVE main;
  END IF;

  SELECT listener INTO v_listener
    FROM (SELECT DISTINCT listener FROM lockattr_v2_notifications) AS listeners
    WHERE IS_USED_LOCK(CONCAT('lockattr:', listener)) IS NULL LIMIT 1;
  DELETE FROM lockattr_v2_notifications WHERE listener = v_listener LIMIT 500;

  SELECT COUNT(*), MAX(id), UNHEX(GROUP_CONCAT(IF(has_ended, HEX(id), NULL) ORDER BY id SEPARATOR ''))
    INTO v_count, v_last, v_ids FROM (
      SELECT id, ends <= v_now OR (waiting <> 0 AND waiting <> (
        SELECT COUNT(*) FROM lockattr_v2_queue AS entry
        WHERE entry.id = main.id AND asked + LEAST(GREATEST(ttl, 1000000), 15000000) > v_now
      )) AS has_ended
      FROM lockattr_v2_locks AS main WHERE id > v_from AND seat = '' ORDER BY id LIMIT 500
    ) AS part;
  SET v_more = v_count = 500 OR IFNULL(LENGTH(v_ids), 0) > 3200 OR v_listener IS NOT NULL;
  IF LENGTH(v_ids) > 3200 THEN
    SET v_ids = LEFT(v_ids, 3200), v_last = RIGHT(v_ids, 32);
  END IF;
  WHILE LENGTH(v_ids) > 0 DO
    SET v_id = LEFT(v_ids, 32), v_ids = SUBSTRING(v_ids, 33), v_mode = NULL;
    SELECT mode, ends, waiting INTO v_mode, v_ends, v_waiting
      FROM lockattr_v2_locks WHERE id = v_id AND seat = '' FOR UPDATE SKIP LOCKED;
    IF v_mode = 'x' AND v_ends <= v_now AND v_waiting = 0 THEN
      -- The usual case.
      DELETE FROM lockattr_v2_locks WHERE id = v_id AND seat = '';
    ELSEIF v_mode IS NOT NULL THEN
      CALL lockattr_v2_expire(v_id, v_now);
      DELETE FROM lockattr_v2_queue
        WHERE id = v_id AND asked + LEAST(GREATEST(ttl, 1000000), 15000000) <= v_now;
      -- Waiters that are left request the lock themselves.
      UPDATE lockattr_v2_locks SET waiting = (SELECT COUNT(*) FROM lockattr_v2_queue WHERE id = v_id)
        WHERE id = v_id AND seat = '';
      DELETE FROM lockattr_v2_locks WHERE id = v_id AND seat = '' AND mode = '-' AND waiting = 0;
    END IF;
  END WHILE;
  UPDATE lockattr_v2_sweep SET due = IF(v_more, v_now, v_now + 40000000),
    next = IF(v_more, IFNULL(v_last, v_from), '') WHERE id = 0;
  COMMIT;
  SELECT v_more;
END
