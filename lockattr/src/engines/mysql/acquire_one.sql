-- Acquires one free exclusive lock: lockattr_v2_acquire_several for a single claim.
--
-- Returns the fencing number, or NULL if the lock is not free.
--
-- Only for MySQL.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_acquire_one(
  IN p_name BLOB, IN p_token VARBINARY(32), IN p_value BLOB,
  IN p_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, IN p_ttl BIGINT)
  SQL SECURITY INVOKER
main: BEGIN
  DECLARE v_now BIGINT;
  DECLARE v_id BINARY(32) DEFAULT UNHEX(SHA2(p_name, 256));
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  INSERT IGNORE INTO lockattr_v2_locks
    (id, seat, name, mode, token, value, listener, ends, waiting, holders)
    VALUES (v_id, '', p_name, 'x', p_token, p_value, p_listener,
      TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)) + p_ttl, 0, 1);
  IF ROW_COUNT() <> 1 THEN
    ROLLBACK;
    SELECT NULL;
    LEAVE main;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
  INSERT INTO lockattr_v2_numbers (slot, last) VALUES (ORD(v_id), LAST_INSERT_ID(v_now))
    ON DUPLICATE KEY UPDATE last = LAST_INSERT_ID(GREATEST(last + 1, v_now));
  COMMIT;
  SELECT LAST_INSERT_ID();
END
