-- Releases the locks that one claim still holds, removes it from the wait queues, and hands off
-- what has become free. With p_after, the locks stay held for that many microseconds instead.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_release(
  IN p_count INT, IN p_names LONGBLOB, IN p_token VARBINARY(32), IN p_after BIGINT, OUT p_held INT)
  SQL SECURITY INVOKER
main: BEGIN
  DECLARE v_now, v_ends, v_place, v_ttl, v_asked, v_lease, v_number BIGINT;
  DECLARE v_id BINARY(32);
  DECLARE v_ids, v_left, v_had LONGBLOB DEFAULT '';
  DECLARE v_name, v_value BLOB;
  DECLARE v_mode VARBINARY(1);
  DECLARE v_token VARBINARY(32);
  DECLARE v_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  DECLARE v_length, v_waiting, v_together, v_served, v_delivered INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

  SET p_held = 0;
  START TRANSACTION;
  IF p_count = 1 AND p_after = 0 THEN
    -- The usual case: an exclusive lock whose queue begins with a claim for that lock alone. Handled
    -- here, because calls would double the cost.
    SET v_id = UNHEX(SHA2(p_names, 256));
    SELECT mode, token, ends, waiting INTO v_mode, v_token, v_ends, v_waiting
      FROM lockattr_v2_locks WHERE id = v_id AND seat = '' FOR UPDATE;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
    IF v_mode = 'x' AND v_token = p_token AND v_ends > v_now AND v_waiting > 0 THEN
      SELECT place, token, value, listener, mode, ttl, asked, together
        INTO v_place, v_token, v_value, v_listener, v_mode, v_ttl, v_asked, v_together
        FROM lockattr_v2_queue WHERE id = v_id ORDER BY place LIMIT 1;
      -- The rules are those of lockattr_v2_hand_off. Each waiter checks every five seconds at least,
      -- so a lease that ends a little sooner than the one before concerns none of them.
      SET v_lease = LEAST(v_ttl, GREATEST(v_ttl, 1000000) - (v_now - v_asked));
      IF v_mode = 'x' AND v_together = 1 AND v_token <> p_token AND v_listener <> ''
        AND v_asked + LEAST(GREATEST(v_ttl, 1000000), 15000000) > v_now
        AND v_now + v_lease + 5000000 > v_ends
        AND IS_USED_LOCK(CONCAT('lockattr:', v_listener)) IS NOT NULL
      THEN
        DELETE FROM lockattr_v2_queue WHERE id = v_id AND place = v_place;
        /*M! SET v_number = NEXT VALUE FOR lockattr_v2_numbers; */
        /*!50708
        INSERT INTO lockattr_v2_numbers (slot, last) VALUES (ORD(v_id), LAST_INSERT_ID(v_now))
          ON DUPLICATE KEY UPDATE last = LAST_INSERT_ID(GREATEST(last + 1, v_now));
        SET v_number = LAST_INSERT_ID();
        */
        UPDATE lockattr_v2_locks SET token = v_token, value = v_value, listener = v_listener,
          ends = v_now + v_lease, waiting = v_waiting - 1 WHERE id = v_id AND seat = '';
        INSERT INTO lockattr_v2_notifications (listener, id, subscriber, message)
          VALUES (v_listener, UUID_SHORT(), LEFT(v_token, 16),
            CONCAT('granted ', v_token, ' ', v_number, ' ', v_now, ' ', v_waiting > 1, ' ',
              (v_ttl - v_lease + 999) DIV 1000));
        COMMIT;
        SET p_held = 1, v_place = SUBSTRING(v_listener, 18);
        BEGIN
          -- As in lockattr_v2_wake.
          DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
          KILL QUERY v_place;
        END;
        LEAVE main;
      END IF;
    END IF;
  END IF;
  WHILE LENGTH(p_names) > 0 DO
    IF p_count = 1 THEN
      SET v_name = p_names, p_names = '';
    ELSE
      SET v_length = LEFT(p_names, 8);
      SET v_name = SUBSTRING(p_names, 9, v_length), p_names = SUBSTRING(p_names, 9 + v_length);
    END IF;
    SET v_id = UNHEX(SHA2(v_name, 256)), v_mode = NULL;
    SELECT mode INTO v_mode FROM lockattr_v2_locks WHERE id = v_id AND seat = '' FOR UPDATE;
    -- Without a row, the lock has no holder and no waiters.
    IF v_mode IS NOT NULL THEN
      SET v_ids = CONCAT(v_ids, v_id);
    END IF;
  END WHILE;

  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)), v_left = v_ids;
  WHILE LENGTH(v_left) > 0 DO
    SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33), v_ends = NULL;
    CALL lockattr_v2_expire(v_id, v_now);
    SELECT ends, mode INTO v_ends, v_mode
      FROM lockattr_v2_locks WHERE id = v_id AND token = p_token LIMIT 1;
    IF v_ends IS NOT NULL THEN
      SET p_held = p_held + 1, v_had = CONCAT(v_had, v_id, LPAD(v_ends, 20, '0'));
      IF p_after > 0 THEN
        UPDATE lockattr_v2_locks SET ends = v_now + p_after WHERE id = v_id AND token = p_token;
        UPDATE lockattr_v2_locks SET ends = LEAST(ends, v_now + p_after) WHERE id = v_id AND seat = '';
      ELSEIF v_mode = 'x' THEN
        UPDATE lockattr_v2_locks SET mode = '-', token = '', holders = 0, ends = v_now
          WHERE id = v_id AND seat = '';
      ELSE
        DELETE FROM lockattr_v2_locks WHERE id = v_id AND seat = p_token;
        UPDATE lockattr_v2_locks SET mode = IF(holders = 1, '-', mode), holders = holders - 1
          WHERE id = v_id AND seat = '';
      END IF;
    END IF;
    DELETE FROM lockattr_v2_queue WHERE id = v_id AND token = p_token;
    IF ROW_COUNT() > 0 THEN
      UPDATE lockattr_v2_locks SET waiting = waiting - 1 WHERE id = v_id AND seat = '';
    END IF;
  END WHILE;

  CALL lockattr_v2_hand_off(v_ids, NULL, v_now, v_wakes, v_number, v_served);
  WHILE LENGTH(v_had) > 0 DO
    SET v_id = LEFT(v_had, 32), v_ends = SUBSTRING(v_had, 33, 20), v_had = SUBSTRING(v_had, 53);
    IF p_after = 0 THEN
      CALL lockattr_v2_wake_earlier(v_id, v_ends, v_now, v_wakes);
    ELSE
      -- The lease ends at another time than the waiters expect.
      SET v_place = 0;
      WHILE v_place IS NOT NULL DO
        SET v_ends = v_place, v_place = NULL;
        SELECT place, token, listener INTO v_place, v_token, v_listener
          FROM lockattr_v2_queue WHERE id = v_id AND place > v_ends ORDER BY place LIMIT 1;
        IF v_place IS NOT NULL THEN
          CALL lockattr_v2_notify(v_listener, v_token,
            CONCAT('later ', v_token, ' ', p_after DIV 1000 + 1), v_wakes, v_delivered);
        END IF;
      END WHILE;
    END IF;
  END WHILE;
  COMMIT;
  CALL lockattr_v2_wake(v_wakes);
  SET p_held = p_held = p_count;
END
