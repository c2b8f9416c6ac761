-- Releases those of several exclusive locks that no claim waits for, each for another claim. p_items
-- is a JSON array with an array for each: the lock's id as hexadecimal digits, and the token.
--
-- Returns a string: the tokens of the claims whose locks were released. NULL if none was.
--
-- Only for MySQL. In MariaDB a plain DELETE returns what it has deleted.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_release_several(IN p_items LONGTEXT CHARACTER SET utf8mb4)
  SQL SECURITY INVOKER
BEGIN
  /*!50708
  DECLARE v_now BIGINT;
  DECLARE v_released LONGTEXT CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
  SELECT GROUP_CONCAT(locks.token) INTO v_released
    FROM JSON_TABLE(p_items, '$[*]'
      COLUMNS (id CHAR(64) CHARACTER SET ascii PATH '$[0]',
        token CHAR(32) CHARACTER SET ascii PATH '$[1]')) AS items
    STRAIGHT_JOIN lockattr_v2_locks AS locks ON locks.id = UNHEX(items.id) AND locks.seat = ''
    WHERE locks.token = items.token AND locks.mode = 'x' AND locks.waiting = 0 AND locks.ends > v_now
    FOR UPDATE OF locks;
  IF v_released IS NOT NULL THEN
    -- Not those whose last waiter has left since: they would not be reported.
    DELETE locks
      FROM JSON_TABLE(p_items, '$[*]'
        COLUMNS (id CHAR(64) CHARACTER SET ascii PATH '$[0]',
        token CHAR(32) CHARACTER SET ascii PATH '$[1]')) AS items
      STRAIGHT_JOIN lockattr_v2_locks AS locks ON locks.id = UNHEX(items.id) AND locks.seat = ''
      WHERE locks.token = items.token AND FIND_IN_SET(locks.token, v_released);
  END IF;
  COMMIT;
  SELECT REPLACE(v_released, ',', '');
  */
END
