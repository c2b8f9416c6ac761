-- Wakes the listening connections. Called after the commit, so that they find their messages.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_wake(IN p_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_listener BIGINT UNSIGNED;
  -- The connection is gone, or belongs to another user: then it finds its messages later.
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
  WHILE p_wakes <> '' DO
    SET v_listener = SUBSTRING_INDEX(p_wakes, ',', 1);
    SET p_wakes = SUBSTRING(p_wakes, LOCATE(',', p_wakes) + 1);
    KILL QUERY v_listener;
  END WHILE;
END
