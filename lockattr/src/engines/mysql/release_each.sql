-- Releases the locks of several claims, each in its own transaction. For each claim: the number of
-- its keys in 4 digits, the length of its names in 8, the names as in lockattr_v2_acquire, its token,
-- and for how many microseconds the locks stay held, in 20 digits.
--
-- Returns a string: 1 for each claim that had its locks, else 0.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_release_each(IN p_items LONGBLOB)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_length, v_held INT;
  DECLARE v_results LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  WHILE LENGTH(p_items) > 0 DO
    SET v_length = SUBSTRING(p_items, 5, 8);
    CALL lockattr_v2_release(LEFT(p_items, 4), SUBSTRING(p_items, 13, v_length),
      SUBSTRING(p_items, 13 + v_length, 32), SUBSTRING(p_items, 45 + v_length, 20), v_held);
    SET v_results = CONCAT(v_results, v_held), p_items = SUBSTRING(p_items, 65 + v_length);
  END WHILE;
  SELECT v_results;
END
