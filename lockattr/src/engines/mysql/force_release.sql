-- Takes one lock from all its holders, and hands it off to the head of its wait queue.
--
-- Returns a string: 1 if the lock was held, else 0.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_force_release(IN p_name BLOB)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_now, v_ends, v_number BIGINT;
  DECLARE v_id BINARY(32) DEFAULT UNHEX(SHA2(p_name, 256));
  DECLARE v_mode VARBINARY(1) DEFAULT NULL;
  DECLARE v_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  DECLARE v_had, v_served INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

  START TRANSACTION;
  SELECT mode INTO v_mode FROM lockattr_v2_locks WHERE id = v_id AND seat = '' FOR UPDATE;
  -- Without a row, the lock has no holder and no waiters.
  IF v_mode IS NOT NULL THEN
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
    CALL lockattr_v2_expire(v_id, v_now);
    SELECT MIN(ends) INTO v_ends FROM lockattr_v2_locks WHERE id = v_id AND token <> '';
    IF v_ends IS NOT NULL THEN
      SET v_had = 1;
      DELETE FROM lockattr_v2_locks WHERE id = v_id AND seat <> '';
      UPDATE lockattr_v2_locks SET mode = '-', token = '', holders = 0, ends = v_now
        WHERE id = v_id AND seat = '';
    END IF;
    CALL lockattr_v2_hand_off(v_id, NULL, v_now, v_wakes, v_number, v_served);
    IF v_had THEN
      CALL lockattr_v2_wake_earlier(v_id, v_ends, v_now, v_wakes);
    END IF;
  END IF;
  COMMIT;
  CALL lockattr_v2_wake(v_wakes);
  SELECT IF(v_had, '1', '0');
END
