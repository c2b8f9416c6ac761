-- Ends the expired leases on one lock. Its row is locked already.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_expire(IN p_id BINARY(32), IN p_now BIGINT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_mode VARBINARY(1);
  DECLARE v_ends, v_first BIGINT;
  DECLARE v_holders INT;
  SELECT mode, ends INTO v_mode, v_ends FROM lockattr_v2_locks WHERE id = p_id AND seat = '';
  IF v_mode = 'x' AND v_ends <= p_now THEN
    UPDATE lockattr_v2_locks SET mode = '-', token = '', holders = 0 WHERE id = p_id AND seat = '';
  ELSEIF v_mode = 's' OR v_mode = 'p' THEN
    IF v_ends <= p_now THEN
      DELETE FROM lockattr_v2_locks WHERE id = p_id AND seat <> '' AND ends <= p_now;
    END IF;
    SELECT COUNT(*), MIN(ends) INTO v_holders, v_first
      FROM lockattr_v2_locks WHERE id = p_id AND seat <> '';
    UPDATE lockattr_v2_locks
      SET mode = IF(v_holders = 0, '-', mode), holders = v_holders, ends = IFNULL(v_first, p_now)
      WHERE id = p_id AND seat = '';
  END IF;
END
