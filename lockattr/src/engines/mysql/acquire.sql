-- Acquires free locks, or acquires again the locks that this claim already holds. If they are not
-- free and the claim waits, adds it to the wait queues. All of the locks or none.
--
-- p_names is the name of the lock; for several locks, each name has its length in 8 digits before
-- it.
--
-- Returns the fencing number or NULL, whether others wait, a holder's value, the microseconds until
-- a lease ends or NULL, the server's clock, and whether claims wait before this one.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_acquire(
  IN p_count INT, IN p_names LONGBLOB, IN p_token VARBINARY(32), IN p_value BLOB,
  IN p_ttl BIGINT, IN p_mode VARBINARY(1), IN p_permits BIGINT,
  IN p_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, IN p_waits INT)
  SQL SECURITY INVOKER
main: BEGIN
  DECLARE v_now, v_number, v_ends, v_first, v_place, v_ttl, v_asked BIGINT;
  DECLARE v_id BINARY(32);
  DECLARE v_ids, v_left LONGBLOB DEFAULT '';
  DECLARE v_name, v_value, v_holder BLOB;
  DECLARE v_token VARBINARY(32);
  DECLARE v_held VARBINARY(1);
  DECLARE v_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  DECLARE v_length, v_has, v_queued, v_ahead, v_waiting, v_total, v_holders, v_refused, v_served, v_delivered
    INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

  START TRANSACTION;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
  IF p_count = 1 AND p_mode = 'x' THEN
    -- The usual case: another claim holds the lock. Handled here, because calls would double the
    -- cost.
    SET v_ids = UNHEX(SHA2(p_names, 256));
    SELECT mode, token, value, listener, ends, waiting
      INTO v_held, v_token, v_holder, v_listener, v_ends, v_waiting
      FROM lockattr_v2_locks WHERE id = v_ids AND seat = '' FOR UPDATE;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
    IF v_held = 'x' AND v_token <> p_token AND v_ends > v_now THEN
      SELECT COUNT(*) INTO v_queued FROM lockattr_v2_queue WHERE token = p_token;
      IF NOT p_waits THEN
        COMMIT;
        SELECT NULL, 1, v_holder, v_ends - v_now, v_now, 0;
        LEAVE main;
      ELSEIF v_queued = 0 THEN
        SELECT MAX(place) INTO v_place FROM lockattr_v2_queue WHERE id = v_ids;
        INSERT INTO lockattr_v2_queue
          (id, place, token, value, listener, mode, permits, ttl, asked, together)
          VALUES (v_ids, GREATEST(v_now, IFNULL(v_place, 0) + 1), p_token, p_value, p_listener, 'x',
            0, p_ttl, v_now, 1);
        UPDATE lockattr_v2_locks SET waiting = v_waiting + 1 WHERE id = v_ids AND seat = '';
        IF v_waiting = 0 THEN
          CALL lockattr_v2_notify(v_listener, v_token, CONCAT('wanted ', p_names), v_wakes, v_delivered);
        END IF;
        COMMIT;
        CALL lockattr_v2_wake(v_wakes);
        SELECT NULL, 1, v_holder, v_ends - v_now, v_now, v_waiting > 0;
        LEAVE main;
      END IF;
    END IF;
    SET v_waiting = 0, v_queued = 0, v_holder = NULL;
  END IF;
  -- In the order that all clients use.
  SET v_ids = '';
  WHILE LENGTH(p_names) > 0 DO
    IF p_count = 1 THEN
      SET v_name = p_names, p_names = '';
    ELSE
      SET v_length = LEFT(p_names, 8);
      SET v_name = SUBSTRING(p_names, 9, v_length), p_names = SUBSTRING(p_names, 9 + v_length);
    END IF;
    SET v_id = UNHEX(SHA2(v_name, 256)), v_ids = CONCAT(v_ids, v_id);
    INSERT INTO lockattr_v2_locks (id, seat, name, mode, token, value, listener, ends, waiting, holders)
      VALUES (v_id, '', v_name, '-', '', '', '', v_now, 0, 0)
      ON DUPLICATE KEY UPDATE holders = holders;
  END WHILE;

  -- The rows are locked. Read them.
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)), v_left = v_ids;
  WHILE LENGTH(v_left) > 0 DO
    SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33);
    CALL lockattr_v2_expire(v_id, v_now);
    SELECT COUNT(*) + v_has INTO v_has FROM lockattr_v2_locks WHERE id = v_id AND token = p_token;
    SELECT waiting + v_total INTO v_total FROM lockattr_v2_locks WHERE id = v_id AND seat = '';
  END WHILE;

  IF v_has = p_count THEN
    SET v_left = v_ids;
    WHILE LENGTH(v_left) > 0 DO
      SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33);
      -- Never shortens a lease: a late request may arrive after an `extend`.
      UPDATE lockattr_v2_locks SET ends = GREATEST(ends, v_now + p_ttl), listener = p_listener
        WHERE id = v_id AND token = p_token;
    END WHILE;
    CALL lockattr_v2_count(v_ids, v_now, v_number);
  ELSE
    IF NOT p_waits AND v_total > 0 THEN
      -- If the last holder's lease has expired, the waiters may have the locks.
      CALL lockattr_v2_hand_off(v_ids, '', v_now, v_wakes, v_number, v_served);
      SET v_total = 0;
    END IF;
    -- All waiters may have been gone.
    SET v_left = v_ids;
    WHILE LENGTH(v_left) > 0 AND NOT p_waits DO
      SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33);
      SELECT mode, holders, waiting INTO v_held, v_holders, v_waiting
        FROM lockattr_v2_locks WHERE id = v_id AND seat = '';
      SET v_total = v_total + v_waiting;
      SET v_refused = v_refused OR NOT (v_held = '-' OR (p_mode = 's' AND v_held = 's')
        OR (p_mode = 'p' AND v_held = 'p' AND v_holders < p_permits));
    END WHILE;
    IF p_waits OR (v_total = 0 AND NOT v_refused) THEN
      SELECT COUNT(*), MAX(ttl), MIN(asked) INTO v_queued, v_ttl, v_asked
        FROM lockattr_v2_queue WHERE token = p_token;
      IF v_queued > 0 AND v_asked + LEAST(GREATEST(v_ttl, 1000000), 15000000) <= v_now THEN
        -- Its entry has lapsed: it goes to the end of all its queues.
        SET v_left = v_ids, v_queued = 0;
        WHILE LENGTH(v_left) > 0 DO
          SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33);
          DELETE FROM lockattr_v2_queue WHERE id = v_id AND token = p_token;
          UPDATE lockattr_v2_locks SET waiting = waiting - 1 WHERE id = v_id AND seat = '';
        END WHILE;
      END IF;
      IF v_queued > 0 THEN
        UPDATE lockattr_v2_queue SET listener = p_listener, ttl = p_ttl, asked = v_now
          WHERE token = p_token;
      ELSE
        SET v_left = v_ids;
        WHILE LENGTH(v_left) > 0 DO
          SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33), v_place = NULL;
          UPDATE lockattr_v2_locks SET waiting = waiting + 1 WHERE id = v_id AND seat = '';
          SELECT MAX(place) INTO v_place FROM lockattr_v2_queue WHERE id = v_id;
          INSERT INTO lockattr_v2_queue
            (id, place, token, value, listener, mode, permits, ttl, asked, together)
            VALUES (v_id, GREATEST(v_now, IFNULL(v_place, 0) + 1), p_token, p_value, p_listener,
              p_mode, p_permits, p_ttl, v_now, p_count);
          SELECT mode, token, listener, name, waiting
            INTO v_held, v_token, v_listener, v_name, v_waiting
            FROM lockattr_v2_locks WHERE id = v_id AND seat = '';
          IF v_held = 'x' AND v_waiting = 1 THEN
            CALL lockattr_v2_notify(v_listener, v_token, CONCAT('wanted ', v_name), v_wakes, v_delivered);
          END IF;
        END WHILE;
      END IF;
      CALL lockattr_v2_hand_off(v_ids, p_token, v_now, v_wakes, v_number, v_delivered);
      SET v_served = v_served OR v_delivered;
    END IF;
  END IF;

  SET v_left = v_ids, v_total = 0;
  WHILE LENGTH(v_left) > 0 DO
    SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33), v_ends = NULL;
    IF v_served THEN
      CALL lockattr_v2_wake_earlier(v_id, NULL, v_now, v_wakes);
    END IF;
    SELECT value, ends INTO v_value, v_ends FROM lockattr_v2_locks
      WHERE id = v_id AND token <> '' ORDER BY ends - v_now LIMIT 1;
    IF v_ends IS NOT NULL THEN
      SET v_holder = IFNULL(v_holder, v_value);
      SET v_first = LEAST(IFNULL(v_first, v_ends), v_ends);
    END IF;
    SELECT waiting + v_total INTO v_total FROM lockattr_v2_locks WHERE id = v_id AND seat = '';
    -- The row of a claim that did not acquire the lock.
    DELETE FROM lockattr_v2_locks WHERE id = v_id AND seat = '' AND mode = '-' AND waiting = 0;
  END WHILE;
  SELECT COUNT(*) INTO v_ahead FROM lockattr_v2_queue AS mine
    JOIN lockattr_v2_queue AS other ON other.id = mine.id AND other.place < mine.place
    WHERE mine.token = p_token;
  COMMIT;
  CALL lockattr_v2_wake(v_wakes);
  SELECT v_number, v_total > 0, v_holder, v_first - v_now, v_now, v_ahead > 0;
END
