-- Releases the locks of several claims, each in its own transaction. For each claim: the number of
-- its keys in 4 digits, the length of its names in 8, the names as in lockattr_v1_acquire, its
-- token, and for how many microseconds the locks stay held, in 20 digits.
--
-- Returns a string: 1 for each claim that had its locks, else 0.
CREATE PROCEDURE lockattr_v1_releases(IN p_items LONGBLOB)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_length, v_held INT;
  DECLARE v_token VARBINARY(32);
  DECLARE v_results LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  WHILE LENGTH(p_items) > 0 DO
    SET v_length = SUBSTRING(p_items, 5, 8), v_token = SUBSTRING(p_items, 13 + v_length, 32);
    SET v_held = LEFT(p_items, 4) = 1 AND SUBSTRING(p_items, 45 + v_length, 20) = 0;
    IF v_held THEN
      -- The usual case: one exclusive lock without waiters. Handled here, because a call would
      -- double the cost. The end is compared in a form that no index serves: if two indexes promise
      -- one row each, the optimizer may choose the one on `ends`, and step over all recently
      -- released rows there.
      DELETE FROM lockattr_locks
        WHERE id = UNHEX(SHA2(SUBSTRING(p_items, 13, v_length), 256)) AND seat = '' AND mode = 'x'
        AND token = v_token AND waiting = 0
        AND ends - TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)) > 0;
      SET v_held = ROW_COUNT();
    END IF;
    IF NOT v_held THEN
      CALL lockattr_v1_release(LEFT(p_items, 4), SUBSTRING(p_items, 13, v_length), v_token,
        SUBSTRING(p_items, 45 + v_length, 20), v_held);
    END IF;
    SET v_results = CONCAT(v_results, v_held), p_items = SUBSTRING(p_items, 65 + v_length);
  END WHILE;
  SELECT v_results;
END
