-- Acquires a lock that belongs to the session and not to a row, and waits in the server's own queue
-- for at most p_seconds. The lock's name there depends on the database, so databases share no
-- locks. Once the session has the lock, the server ends it after p_idle seconds without a statement.
--
-- Returns whether the lock was acquired, its fencing number, and its name on the server.
CREATE PROCEDURE lockattr_v2_session(
  IN p_name VARBINARY(8192), IN p_seconds INT, IN p_idle INT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_lock VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_acquired INT;
  DECLARE v_number BIGINT;
  SET v_lock = CONCAT('lockattr:lock:', LEFT(SHA2(CONCAT(DATABASE(), '/', p_name), 256), 50));
  SET v_acquired = GET_LOCK(v_lock, p_seconds);
  IF v_acquired = 1 THEN
    SET SESSION wait_timeout = p_idle;
    -- As lockattr_v2_count does, without a call.
    /*M! SET v_number = NEXT VALUE FOR lockattr_v2_numbers; */
    /*!50708
    SET v_number = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
    INSERT INTO lockattr_v2_numbers (slot, last)
      VALUES (ORD(UNHEX(SHA2(p_name, 256))), LAST_INSERT_ID(v_number))
      ON DUPLICATE KEY UPDATE last = LAST_INSERT_ID(GREATEST(last + 1, v_number));
    SET v_number = LAST_INSERT_ID();
    */
  END IF;
  SELECT v_acquired, v_number, v_lock;
END
