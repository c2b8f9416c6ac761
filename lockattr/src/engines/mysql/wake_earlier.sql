-- The waiters of a lock expect its next lease to end at p_ended, or know of no lease if that is
-- NULL. If the next lease ends sooner, notifies the first waiter whose process listens.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_wake_earlier(
  IN p_id BINARY(32), IN p_ended BIGINT, IN p_now BIGINT,
  INOUT p_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_ends, v_place BIGINT;
  DECLARE v_passed BIGINT DEFAULT 0;
  DECLARE v_token VARBINARY(32);
  DECLARE v_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_delivered INT DEFAULT 0;
  SELECT MIN(ends) INTO v_ends FROM lockattr_v2_locks WHERE id = p_id AND token <> '';
  IF v_ends IS NOT NULL AND (p_ended IS NULL OR v_ends < p_ended) THEN
    WHILE v_delivered = 0 DO
      SET v_place = NULL;
      SELECT place, token, listener INTO v_place, v_token, v_listener
        FROM lockattr_v2_queue WHERE id = p_id AND place > v_passed ORDER BY place LIMIT 1;
      IF v_place IS NULL THEN
        SET v_delivered = 1;
      ELSE
        SET v_passed = v_place;
        CALL lockattr_v2_notify(v_listener, v_token,
          CONCAT('later ', v_token, ' ', GREATEST(v_ends - p_now, 0) DIV 1000 + 1), p_wakes, v_delivered);
      END IF;
    END WHILE;
  END IF;
END
