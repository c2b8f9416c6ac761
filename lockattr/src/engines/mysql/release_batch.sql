-- Releases the locks of several claims. For each claim: the number of its keys in 4 digits, the
-- length of its names in 8, the names as in lockattr_v2_acquire, its token, and for how many
-- microseconds the locks stay held, in 20 digits.
--
-- Returns a string: 1 for each claim that had its locks, else 0.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_release_batch(IN p_items LONGBLOB)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_left LONGBLOB DEFAULT p_items;
  DECLARE v_length, v_held, v_nth INT;
  DECLARE v_results LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  -- The usual case first, all in one transaction: exclusive locks without waiters.
  START TRANSACTION;
  WHILE LENGTH(v_left) > 0 DO
    SET v_length = SUBSTRING(v_left, 5, 8), v_held = 0;
    IF LEFT(v_left, 4) = 1 AND SUBSTRING(v_left, 45 + v_length, 20) = 0 THEN
      DELETE FROM lockattr_v2_locks
        WHERE id = UNHEX(SHA2(SUBSTRING(v_left, 13, v_length), 256)) AND seat = ''
        AND mode = 'x' AND token = SUBSTRING(v_left, 13 + v_length, 32) AND waiting = 0
        AND ends > TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
      SET v_held = ROW_COUNT();
    END IF;
    SET v_results = CONCAT(v_results, v_held), v_left = SUBSTRING(v_left, 65 + v_length);
  END WHILE;
  COMMIT;
  -- The others, each in its own transaction.
  IF LOCATE('0', v_results) > 0 THEN
    SET v_left = p_items, v_nth = 1;
    WHILE LENGTH(v_left) > 0 DO
      SET v_length = SUBSTRING(v_left, 5, 8);
      IF SUBSTRING(v_results, v_nth, 1) = '0' THEN
        CALL lockattr_v2_release(LEFT(v_left, 4), SUBSTRING(v_left, 13, v_length),
          SUBSTRING(v_left, 13 + v_length, 32), SUBSTRING(v_left, 45 + v_length, 20), v_held);
        SET v_results = INSERT(v_results, v_nth, 1, v_held);
      END IF;
      SET v_left = SUBSTRING(v_left, 65 + v_length), v_nth = v_nth + 1;
    END WHILE;
  END IF;
  SELECT v_results;
END
