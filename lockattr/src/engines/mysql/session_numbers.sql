-- How UUID_SHORT() becomes fencing numbers of locks that belong to sessions: as long as a server runs,
-- they are base + UUID_SHORT() - first, and at most last. A session reads this rule when it begins and
-- with each heartbeat, so that a lock costs no write. If it has drawn a number beyond last, it calls
-- this again, for another number. UUID_SHORT() begins with the server's
-- id and the second in which the server was started, counts up, and ignores the clock from then on.
-- After a restart, or on another server, it is far from first, and a new rule begins with the clock, or
-- with last if that is greater. So numbers only grow, also where a row of an old backup comes back.
--
-- Two servers of one database need different ids, as UUID_SHORT() and replication demand.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_session_numbers()
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_drawn, v_first BIGINT UNSIGNED;
  DECLARE v_base, v_last BIGINT;
  -- So many numbers are reserved at once.
  DECLARE v_many INT DEFAULT 1048576;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  -- A server that restarts in the second of its start counts from the same again. So nothing is
  -- reserved in that second.
  IF (UUID_SHORT() >> 24) & 4294967295 = UNIX_TIMESTAMP() THEN
    DO SLEEP(1.01 - MICROSECOND(SYSDATE(6)) / 1000000);
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
    UPDATE lockattr_v2_session_numbers SET first = v_first, base = v_base, last = v_last WHERE id = 0;
  ELSEIF v_drawn - v_first > v_last - v_base - v_many DIV 2 THEN
    UPDATE lockattr_v2_session_numbers SET last = last + v_many WHERE id = 0;
  END IF;
  COMMIT;
  SELECT v_drawn, first, base, last, CAST(DATABASE() AS BINARY)
    FROM lockattr_v2_session_numbers WHERE id = 0;
END
