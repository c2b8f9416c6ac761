-- Acquires a lock that belongs to the session and not to a row, and waits in the server's own queue
-- for at most p_seconds. The lock's name there depends on the database, so databases share no
-- locks.
--
-- Returns the fencing number, or NULL if the lock was not acquired.
CREATE PROCEDURE lockattr_v2_session(IN p_name VARBINARY(8192), IN p_seconds INT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_number BIGINT;
  IF GET_LOCK(
    CONCAT('lockattr:lock:', LEFT(SHA2(CONCAT(DATABASE(), '/', p_name), 256), 50)), p_seconds) = 1
  THEN
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
  SELECT v_number;
END
