-- Hands locks off to the heads of their wait queues, in order of arrival. The locks' rows are
-- locked already. If p_requester is granted its locks, its number is returned instead of sent. Deletes
-- the rows of locks without holder and waiters, except those that p_requester still needs.
CREATE PROCEDURE lockattr_v1_serve(
  IN p_ids LONGBLOB, IN p_requester VARBINARY(32), IN p_now BIGINT,
  INOUT p_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin, OUT p_number BIGINT,
  OUT p_served INT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_open LONGBLOB DEFAULT p_ids;
  DECLARE v_id BINARY(32);
  DECLARE v_passed, v_came, v_permits, v_ttl, v_number BIGINT;
  DECLARE v_token VARBINARY(32);
  DECLARE v_value VARBINARY(8192);
  DECLARE v_mode, v_held VARBINARY(1);
  DECLARE v_ear VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_together, v_refused, v_admitted, v_holders, v_contended, v_delivered INT;
  DECLARE v_ids, v_left LONGBLOB;
  SET p_number = NULL, p_served = 0;

  WHILE LENGTH(v_open) > 0 DO
    SET v_id = LEFT(v_open, 32), v_open = SUBSTRING(v_open, 33), v_passed = 0;
    one: LOOP
      SET v_came = NULL;
      SELECT came, token, value, ear, mode, permits, ttl, together
        INTO v_came, v_token, v_value, v_ear, v_mode, v_permits, v_ttl, v_together
        FROM lockattr_line WHERE id = v_id AND came > v_passed ORDER BY came LIMIT 1;
      IF v_came IS NULL THEN
        LEAVE one;
      END IF;

      -- Whether the head could have this lock, and all of its locks.
      SELECT mode, holders INTO v_held, v_holders FROM lockattr_locks WHERE id = v_id AND seat = '';
      SET v_admitted = v_held = '-' OR (v_mode = 's' AND v_held = 's')
        OR (v_mode = 'p' AND v_held = 'p' AND v_holders < v_permits);
      SET v_refused = NOT v_admitted, v_ids = v_id;
      IF v_together > 1 THEN
        SELECT GROUP_CONCAT(HEX(id) ORDER BY id SEPARATOR '') INTO v_ids
          FROM lockattr_line WHERE token = v_token;
        SET v_ids = UNHEX(v_ids), v_left = v_ids, v_refused = 0;
        WHILE LENGTH(v_left) > 0 DO
          SELECT mode INTO v_held FROM lockattr_locks
            WHERE id = LEFT(v_left, 32) AND seat = '' FOR UPDATE;
          CALL lockattr_v1_expire(LEFT(v_left, 32), p_now);
          SELECT mode, holders INTO v_held, v_holders
            FROM lockattr_locks WHERE id = LEFT(v_left, 32) AND seat = '';
          SET v_refused = v_refused OR NOT (v_held = '-' OR (v_mode = 's' AND v_held = 's')
            OR (v_mode = 'p' AND v_held = 'p' AND v_holders < v_permits));
          SET v_left = SUBSTRING(v_left, 33);
        END WHILE;
      END IF;

      IF v_refused THEN
        IF v_together > 1 AND v_admitted AND p_now - v_came < 1000000 THEN
          -- It waits for another key. For up to a second, the next waiter may have this one.
          SET v_passed = v_came;
          ITERATE one;
        END IF;
        LEAVE one;
      END IF;

      -- If no connection listens for it, its process is gone, and the next waiter is served.
      SET v_delivered = v_token <=> p_requester
        OR (v_ear <> '' AND IS_USED_LOCK(CONCAT('lockattr:', v_ear)) IS NOT NULL);
      SET v_left = v_ids, v_contended = 0;
      WHILE LENGTH(v_left) > 0 DO
        SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33);
        DELETE FROM lockattr_line WHERE id = v_id AND token = v_token;
        IF NOT v_delivered THEN
          UPDATE lockattr_locks SET waiting = waiting - 1 WHERE id = v_id AND seat = '';
        ELSEIF v_mode = 'x' THEN
          UPDATE lockattr_locks SET mode = 'x', token = v_token, value = v_value, ear = v_ear,
            ends = p_now + v_ttl, waiting = LAST_INSERT_ID(waiting - 1), holders = 1
            WHERE id = v_id AND seat = '';
          SET v_contended = v_contended OR LAST_INSERT_ID() > 0;
        ELSE
          UPDATE lockattr_locks
            SET ends = IF(holders = 0, p_now + v_ttl, LEAST(ends, p_now + v_ttl)), mode = v_mode,
              waiting = LAST_INSERT_ID(waiting - 1), holders = holders + 1
            WHERE id = v_id AND seat = '';
          SET v_contended = v_contended OR LAST_INSERT_ID() > 0;
          INSERT INTO lockattr_locks
            (id, seat, name, mode, token, value, ear, ends, waiting, holders)
            SELECT id, v_token, name, v_mode, v_token, v_value, v_ear, p_now + v_ttl, 0, 1
            FROM lockattr_locks WHERE id = v_id AND seat = '';
        END IF;
      END WHILE;
      SET v_id = LEFT(v_ids, 32);
      IF v_delivered THEN
        SET p_served = 1;
        CALL lockattr_v1_count(v_ids, p_now, v_number);
        IF v_token <=> p_requester THEN
          SET p_number = v_number;
        ELSE
          CALL lockattr_v1_tell(v_ear, v_token,
            CONCAT('granted ', v_token, ' ', v_number, ' ', p_now, ' ', v_contended), p_wakes, v_delivered);
        END IF;
      END IF;
      IF v_together > 1 THEN
        -- Check all of its locks again, this one included.
        SET v_open = CONCAT(v_open, v_ids);
        LEAVE one;
      END IF;
    END LOOP;
    IF p_requester IS NULL OR LOCATE(v_id, p_ids) = 0 THEN
      DELETE FROM lockattr_locks WHERE id = v_id AND seat = '' AND mode = '-' AND waiting = 0;
    END IF;
  END WHILE;
END
