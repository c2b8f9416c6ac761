-- Returns the number of the next acquisition of all these locks, whose rows are locked: greater than
-- any earlier one of theirs.
--
-- In MySQL it is the server's clock, or one more than the last number: a server that lost its data
-- continues from the clock, and a clock that goes back does not take the counter back. In MariaDB
-- each new connection raises the sequence to the clock (lockattr_v2_start_3), which comes to the same.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_count(IN p_ids LONGBLOB, IN p_now BIGINT, OUT p_number BIGINT)
  SQL SECURITY INVOKER
BEGIN
  /*M! SET p_number = NEXT VALUE FOR lockattr_v2_numbers; */
  /*!50708
  DECLARE v_left LONGBLOB DEFAULT p_ids;
  SET p_number = p_now;
  WHILE LENGTH(v_left) > 0 DO
    INSERT INTO lockattr_v2_numbers (slot, last)
      VALUES (ORD(LEFT(v_left, 1)), LAST_INSERT_ID(p_number))
      ON DUPLICATE KEY UPDATE last = LAST_INSERT_ID(GREATEST(last + 1, p_number));
    SET p_number = LAST_INSERT_ID(), v_left = SUBSTRING(v_left, 33);
  END WHILE;
  IF LENGTH(p_ids) > 32 THEN
    SET v_left = p_ids;
    WHILE LENGTH(v_left) > 0 DO
      UPDATE lockattr_v2_numbers SET last = GREATEST(last, p_number)
        WHERE slot = ORD(LEFT(v_left, 1));
      SET v_left = SUBSTRING(v_left, 33);
    END WHILE;
  END IF;
  */
END
