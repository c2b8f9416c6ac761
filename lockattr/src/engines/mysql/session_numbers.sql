-- How UUID_SHORT() becomes fencing numbers in the modes where a lock belongs to a session: for as
-- long as the server runs, a number is v_base + UUID_SHORT() - v_first, and never greater than
-- v_last. So a session can number its locks without a write for each.
--
-- UUID_SHORT() begins with the server's id and the second in which the server was started, counts
-- up, and ignores the clock from then on. After a restart, or on another server, it is far from
-- v_first. Then v_base becomes the clock, or v_last if that is greater: the numbers are greater than
-- all before.
--
-- Returns v_first, v_base, v_last, and the name of the database.
CREATE PROCEDURE lockattr_v2_session_numbers()
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_drawn, v_first BIGINT UNSIGNED;
  DECLARE v_base, v_last BIGINT;
  -- So many numbers are reserved at once.
  DECLARE v_many INT DEFAULT 1048576;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  -- A server that restarts in the second of its start counts from the same again. So nothing is
  -- numbered in that second.
  IF (UUID_SHORT() >> 24) & 4294967295 >= UNIX_TIMESTAMP() THEN
    DO SLEEP(1);
  END IF;
  START TRANSACTION;
  -- Locks the row.
  INSERT INTO lockattr_v2_session_numbers (id, first, base, last) VALUES (0, 0, 0, 0)
    ON DUPLICATE KEY UPDATE id = 0;
  SELECT first, base, last INTO v_first, v_base, v_last
    FROM lockattr_v2_session_numbers WHERE id = 0 FOR UPDATE;
  SET v_drawn = UUID_SHORT();
  IF v_drawn < v_first OR v_drawn - v_first > v_last - v_base THEN
    SET v_first = v_drawn, v_base = 1 + GREATEST(v_last,
      TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6))), v_last = v_base + v_many;
  ELSEIF v_drawn - v_first > v_last - v_base - v_many DIV 2 THEN
    SET v_last = v_last + v_many;
  END IF;
  UPDATE lockattr_v2_session_numbers SET first = v_first, base = v_base, last = v_last WHERE id = 0;
  COMMIT;
  SELECT v_first, v_base, v_last, DATABASE();
END
