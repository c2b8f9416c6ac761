-- Marks a lock that the claim holds as done: it stays held for p_lasts microseconds, and all its waiters
-- are notified to ask again.
--
-- The token of a done lock begins with `done` in place of the claim's first four digits, so that no
-- later request of the claim matches it, whatever version of lockattr sends it. Nothing is sent to its
-- process any more.
--
-- Returns a string: 1 if the claim held the lock, or had marked it already, else 0.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_mark_done(
  IN p_name BLOB, IN p_token VARBINARY(32), IN p_lasts BIGINT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_now, v_ends, v_place BIGINT;
  DECLARE v_passed BIGINT DEFAULT 0;
  DECLARE v_id BINARY(32) DEFAULT UNHEX(SHA2(p_name, 256));
  DECLARE v_done VARBINARY(32) DEFAULT CONCAT('done', SUBSTRING(p_token, 5));
  DECLARE v_mode VARBINARY(1) DEFAULT NULL;
  DECLARE v_token VARBINARY(32);
  DECLARE v_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  DECLARE v_marked, v_delivered INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

  START TRANSACTION;
  SELECT mode, token, ends INTO v_mode, v_token, v_ends
    FROM lockattr_v2_locks WHERE id = v_id AND seat = '' FOR UPDATE;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
  IF v_mode = 'x' AND v_ends > v_now AND v_token = v_done THEN
    SET v_marked = 1;
  ELSEIF v_mode = 'x' AND v_ends > v_now AND v_token = p_token THEN
    SET v_marked = 1;
    UPDATE lockattr_v2_locks
      SET token = v_done, value = CONCAT(value, ' done=1'), listener = '', ends = v_now + p_lasts
      WHERE id = v_id AND seat = '';
    WHILE v_passed IS NOT NULL DO
      SET v_place = NULL;
      SELECT place, token, listener INTO v_place, v_token, v_listener
        FROM lockattr_v2_queue WHERE id = v_id AND place > v_passed ORDER BY place LIMIT 1;
      IF v_place IS NOT NULL THEN
        CALL lockattr_v2_notify(v_listener, v_token, CONCAT('later ', v_token, ' 0'), v_wakes, v_delivered);
      END IF;
      SET v_passed = v_place;
    END WHILE;
  END IF;
  COMMIT;
  CALL lockattr_v2_wake(v_wakes);
  SELECT IF(v_marked, '1', '0');
END
