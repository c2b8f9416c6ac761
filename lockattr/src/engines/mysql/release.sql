-- Releases the locks that one claim still holds, removes it from the wait queues, and hands off
-- what has become free. With p_after, the locks stay held for that many microseconds instead.
CREATE PROCEDURE lockattr_v1_release(
  IN p_count INT, IN p_names LONGBLOB, IN p_token VARBINARY(32), IN p_after BIGINT, OUT p_held INT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_now, v_ends, v_came, v_number BIGINT;
  DECLARE v_id BINARY(32);
  DECLARE v_ids, v_left, v_had LONGBLOB DEFAULT '';
  DECLARE v_name VARBINARY(8192);
  DECLARE v_mode VARBINARY(1);
  DECLARE v_token VARBINARY(32);
  DECLARE v_ear VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  DECLARE v_length, v_served, v_delivered INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

  SET p_held = 0;
  START TRANSACTION;
  WHILE LENGTH(p_names) > 0 DO
    IF p_count = 1 THEN
      SET v_name = p_names, p_names = '';
    ELSE
      SET v_length = LEFT(p_names, 8);
      SET v_name = SUBSTRING(p_names, 9, v_length), p_names = SUBSTRING(p_names, 9 + v_length);
    END IF;
    SET v_id = UNHEX(SHA2(v_name, 256)), v_mode = NULL;
    SELECT mode INTO v_mode FROM lockattr_locks WHERE id = v_id AND seat = '' FOR UPDATE;
    -- Without a row, the lock has no holder and no waiters.
    IF v_mode IS NOT NULL THEN
      SET v_ids = CONCAT(v_ids, v_id);
    END IF;
  END WHILE;

  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)), v_left = v_ids;
  WHILE LENGTH(v_left) > 0 DO
    SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33), v_ends = NULL;
    CALL lockattr_v1_expire(v_id, v_now);
    SELECT ends, mode INTO v_ends, v_mode
      FROM lockattr_locks WHERE id = v_id AND token = p_token LIMIT 1;
    IF v_ends IS NOT NULL THEN
      SET p_held = p_held + 1, v_had = CONCAT(v_had, v_id, LPAD(v_ends, 20, '0'));
      IF p_after > 0 THEN
        UPDATE lockattr_locks SET ends = v_now + p_after WHERE id = v_id AND token = p_token;
        UPDATE lockattr_locks SET ends = LEAST(ends, v_now + p_after) WHERE id = v_id AND seat = '';
      ELSEIF v_mode = 'x' THEN
        UPDATE lockattr_locks SET mode = '-', token = '', holders = 0, ends = v_now
          WHERE id = v_id AND seat = '';
      ELSE
        DELETE FROM lockattr_locks WHERE id = v_id AND seat = p_token;
        UPDATE lockattr_locks SET mode = IF(holders = 1, '-', mode), holders = holders - 1
          WHERE id = v_id AND seat = '';
      END IF;
    END IF;
    DELETE FROM lockattr_line WHERE id = v_id AND token = p_token;
    IF ROW_COUNT() > 0 THEN
      UPDATE lockattr_locks SET waiting = waiting - 1 WHERE id = v_id AND seat = '';
    END IF;
  END WHILE;

  CALL lockattr_v1_serve(v_ids, NULL, v_now, v_wakes, v_number, v_served);
  WHILE LENGTH(v_had) > 0 DO
    SET v_id = LEFT(v_had, 32), v_ends = SUBSTRING(v_had, 33, 20), v_had = SUBSTRING(v_had, 53);
    IF p_after = 0 THEN
      CALL lockattr_v1_sooner(v_id, v_ends, v_now, v_wakes);
    ELSE
      -- The lease ends at another time than the waiters expect.
      SET v_came = 0;
      WHILE v_came IS NOT NULL DO
        SET v_ends = v_came, v_came = NULL;
        SELECT came, token, ear INTO v_came, v_token, v_ear
          FROM lockattr_line WHERE id = v_id AND came > v_ends ORDER BY came LIMIT 1;
        IF v_came IS NOT NULL THEN
          CALL lockattr_v1_tell(v_ear, v_token,
            CONCAT('later ', v_token, ' ', p_after DIV 1000 + 1), v_wakes, v_delivered);
        END IF;
      END WHILE;
    END IF;
  END WHILE;
  COMMIT;
  CALL lockattr_v1_ring(v_wakes);
  SET p_held = p_held = p_count;
END
