-- Hands locks off to the heads of their wait queues, in order of arrival, and removes entries that
-- have lapsed or whose process is gone. The locks' rows are locked already. If p_requester is granted its locks, its number is returned instead of sent. Deletes
-- the rows of locks without holder and waiters, except those that p_requester still needs.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_hand_off(
  IN p_ids LONGBLOB, IN p_requester VARBINARY(32), IN p_now BIGINT,
  INOUT p_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin, OUT p_number BIGINT,
  OUT p_served INT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_open LONGBLOB DEFAULT p_ids;
  DECLARE v_id BINARY(32);
  DECLARE v_passed, v_place, v_permits, v_ttl, v_asked, v_lease, v_number BIGINT;
  DECLARE v_token VARBINARY(32);
  DECLARE v_value BLOB;
  DECLARE v_mode, v_held VARBINARY(1);
  DECLARE v_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_together, v_refused, v_admitted, v_holders, v_contended, v_alive, v_delivered INT;
  DECLARE v_ids, v_left LONGBLOB;
  SET p_number = NULL, p_served = 0;

  WHILE LENGTH(v_open) > 0 DO
    SET v_id = LEFT(v_open, 32), v_open = SUBSTRING(v_open, 33), v_passed = 0;
    one: LOOP
      SET v_place = NULL;
      SELECT place, token, value, listener, mode, permits, ttl, asked, together
        INTO v_place, v_token, v_value, v_listener, v_mode, v_permits, v_ttl, v_asked, v_together
        FROM lockattr_v2_queue WHERE id = v_id AND place > v_passed ORDER BY place LIMIT 1;
      IF v_place IS NULL THEN
        LEAVE one;
      END IF;

      -- Its process sends requests, and a connection listens for it.
      SET v_alive = v_token <=> p_requester
        OR (v_asked + LEAST(GREATEST(v_ttl, 1000000), 15000000) > p_now AND v_listener <> ''
          AND IS_USED_LOCK(CONCAT('lockattr:', v_listener)) IS NOT NULL);
      -- Whether the head could have this lock, and all of its locks.
      SELECT mode, holders INTO v_held, v_holders FROM lockattr_v2_locks WHERE id = v_id AND seat = '';
      SET v_admitted = v_held = '-' OR (v_mode = 's' AND v_held = 's')
        OR (v_mode = 'p' AND v_held = 'p' AND v_holders < v_permits);
      SET v_refused = NOT v_admitted, v_ids = v_id;
      IF v_together > 1 THEN
        SELECT GROUP_CONCAT(HEX(id) ORDER BY id SEPARATOR '') INTO v_ids
          FROM lockattr_v2_queue WHERE token = v_token;
        SET v_ids = UNHEX(v_ids), v_left = v_ids, v_refused = 0;
        WHILE LENGTH(v_left) > 0 DO
          SELECT mode INTO v_held FROM lockattr_v2_locks
            WHERE id = LEFT(v_left, 32) AND seat = '' FOR UPDATE;
          CALL lockattr_v2_expire(LEFT(v_left, 32), p_now);
          SELECT mode, holders INTO v_held, v_holders
            FROM lockattr_v2_locks WHERE id = LEFT(v_left, 32) AND seat = '';
          SET v_refused = v_refused OR NOT (v_held = '-' OR (v_mode = 's' AND v_held = 's')
            OR (v_mode = 'p' AND v_held = 'p' AND v_holders < v_permits));
          SET v_left = SUBSTRING(v_left, 33);
        END WHILE;
      END IF;

      IF v_refused AND v_alive THEN
        IF v_together > 1 AND v_admitted AND p_now - v_place < 1000000 THEN
          -- It waits for another key. For up to a second, the next waiter may have this one.
          SET v_passed = v_place;
          ITERATE one;
        END IF;
        LEAVE one;
      END IF;

      -- The process may have stopped right after its last request: the lease begins there.
      SET v_left = v_ids, v_contended = 0, v_lease = v_ttl;
      IF NOT v_token <=> p_requester THEN
        SET v_lease = LEAST(v_ttl, GREATEST(v_ttl, 1000000) - (p_now - v_asked));
      END IF;
      WHILE LENGTH(v_left) > 0 DO
        SET v_id = LEFT(v_left, 32), v_left = SUBSTRING(v_left, 33);
        DELETE FROM lockattr_v2_queue WHERE id = v_id AND token = v_token;
        IF NOT v_alive THEN
          UPDATE lockattr_v2_locks SET waiting = waiting - 1 WHERE id = v_id AND seat = '';
        ELSEIF v_mode = 'x' THEN
          UPDATE lockattr_v2_locks SET mode = 'x', token = v_token, value = v_value, listener = v_listener,
            ends = p_now + v_lease, waiting = LAST_INSERT_ID(waiting - 1), holders = 1
            WHERE id = v_id AND seat = '';
          SET v_contended = v_contended OR LAST_INSERT_ID() > 0;
        ELSE
          UPDATE lockattr_v2_locks
            SET ends = IF(holders = 0, p_now + v_lease, LEAST(ends, p_now + v_lease)), mode = v_mode,
              waiting = LAST_INSERT_ID(waiting - 1), holders = holders + 1
            WHERE id = v_id AND seat = '';
          SET v_contended = v_contended OR LAST_INSERT_ID() > 0;
          INSERT INTO lockattr_v2_locks
            (id, seat, name, mode, token, value, listener, ends, waiting, holders)
            SELECT id, v_token, name, v_mode, v_token, v_value, v_listener, p_now + v_lease, 0, 1
            FROM lockattr_v2_locks WHERE id = v_id AND seat = '';
        END IF;
      END WHILE;
      SET v_id = LEFT(v_ids, 32);
      IF v_alive THEN
        SET p_served = 1;
        CALL lockattr_v2_count(v_ids, p_now, v_number);
        IF v_token <=> p_requester THEN
          SET p_number = v_number;
        ELSE
          CALL lockattr_v2_notify(v_listener, v_token,
            CONCAT('granted ', v_token, ' ', v_number, ' ', p_now, ' ', v_contended, ' ',
              (v_ttl - v_lease + 999) DIV 1000), p_wakes, v_delivered);
        END IF;
      END IF;
      IF v_together > 1 THEN
        -- Check all of its locks again, this one included.
        SET v_open = CONCAT(v_open, v_ids);
        LEAVE one;
      END IF;
    END LOOP;
    IF p_requester IS NULL OR LOCATE(v_id, p_ids) = 0 THEN
      DELETE FROM lockattr_v2_locks WHERE id = v_id AND seat = '' AND mode = '-' AND waiting = 0;
    END IF;
  END WHILE;
END
