-- Wakes the listening connections: after the commit, so that they find what they were told.
CREATE PROCEDURE lockattr_v1_ring(IN p_bells LONGTEXT CHARACTER SET ascii COLLATE ascii_bin)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_ear BIGINT UNSIGNED;
  -- Gone meanwhile, or another account's, which looks by itself.
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
  WHILE p_bells <> '' DO
    SET v_ear = SUBSTRING_INDEX(p_bells, ',', 1);
    SET p_bells = SUBSTRING(p_bells, LOCATE(',', p_bells) + 1);
    KILL QUERY v_ear;
  END WHILE;
END
