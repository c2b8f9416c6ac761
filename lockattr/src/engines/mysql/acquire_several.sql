-- Acquires free exclusive locks, each for another claim and by itself. p_items is a JSON array with
-- an array for each: the lock's id, the name, the token, the value, the TTL; id, name and value as
-- hexadecimal digits. All messages go to p_listener.
--
-- Returns a string: the token and 20 digits, the fencing number, of each claim that was granted its
-- lock. NULL if none was.
--
-- Only for MySQL. In MariaDB a plain INSERT returns what it has inserted, and the number. A loop over
-- the claims would take the server three times as long as these statements about all of them.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_acquire_several(
  IN p_items LONGTEXT CHARACTER SET utf8mb4,
  IN p_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin)
  SQL SECURITY INVOKER
BEGIN
  /*!50708
  DECLARE v_now BIGINT;
  DECLARE v_granted, v_numbers LONGTEXT CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
  INSERT IGNORE INTO lockattr_v2_locks
    (id, seat, name, mode, token, value, listener, ends, waiting, holders)
    SELECT UNHEX(id), '', UNHEX(name), 'x', token, UNHEX(value), p_listener, v_now + ttl, 0, 1
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (
      id CHAR(64) CHARACTER SET ascii PATH '$[0]', name LONGTEXT CHARACTER SET ascii PATH '$[1]',
      token CHAR(32) CHARACTER SET ascii PATH '$[2]', value LONGTEXT CHARACTER SET ascii PATH '$[3]',
      ttl BIGINT PATH '$[4]')) AS items;
  -- A row with another end was there before, even if the claim is the same.
  SELECT GROUP_CONCAT(locks.token) INTO v_granted
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id CHAR(64) CHARACTER SET ascii PATH '$[0]',
      token CHAR(32) CHARACTER SET ascii PATH '$[2]', ttl BIGINT PATH '$[4]')) AS items
    STRAIGHT_JOIN lockattr_v2_locks AS locks ON locks.id = UNHEX(items.id) AND locks.seat = ''
      AND locks.token = items.token AND locks.ends = v_now + items.ttl;
  IF v_granted IS NOT NULL THEN
    -- Now that the rows are locked, so that each number is greater than that of the holder before.
    INSERT INTO lockattr_v2_numbers (slot, last)
      SELECT slots.slot, v_now FROM (SELECT DISTINCT ORD(UNHEX(LEFT(id, 2))) AS slot
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id CHAR(64) CHARACTER SET ascii PATH '$[0]',
          token CHAR(32) CHARACTER SET ascii PATH '$[2]')) AS items
        WHERE FIND_IN_SET(token, v_granted)) AS slots
      ORDER BY slots.slot
      ON DUPLICATE KEY UPDATE last = GREATEST(last + 1, v_now);
    SELECT GROUP_CONCAT(items.token, LPAD(numbers.last, 20, '0') SEPARATOR '') INTO v_numbers
      FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id CHAR(64) CHARACTER SET ascii PATH '$[0]',
        token CHAR(32) CHARACTER SET ascii PATH '$[2]')) AS items
      STRAIGHT_JOIN lockattr_v2_numbers AS numbers ON numbers.slot = ORD(UNHEX(LEFT(items.id, 2)))
      WHERE FIND_IN_SET(items.token, v_granted);
  END IF;
  COMMIT;
  SELECT v_numbers;
  */
END
