-- Returns the number of the next acquisition of all these locks: the server's clock, or one more
-- than the last number. A server that lost its data continues from the clock, and a clock that goes
-- back does not take the counter back.
CREATE PROCEDURE lockattr_v1_count(IN p_ids LONGBLOB, IN p_now BIGINT, OUT p_number BIGINT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_left LONGBLOB DEFAULT p_ids;
  DECLARE v_slot INT;
  SET p_number = p_now;
  WHILE LENGTH(v_left) > 0 DO
    SET v_slot = ORD(LEFT(v_left, 1)), v_left = SUBSTRING(v_left, 33);
    INSERT INTO lockattr_fence (slot, last) VALUES (v_slot, LAST_INSERT_ID(p_number))
      ON DUPLICATE KEY UPDATE last = LAST_INSERT_ID(GREATEST(last + 1, p_number));
    SET p_number = LAST_INSERT_ID();
  END WHILE;
  IF LENGTH(p_ids) > 32 THEN
    SET v_left = p_ids;
    WHILE LENGTH(v_left) > 0 DO
      UPDATE lockattr_fence SET last = GREATEST(last, p_number) WHERE slot = ORD(LEFT(v_left, 1));
      SET v_left = SUBSTRING(v_left, 33);
    END WHILE;
  END IF;
END
