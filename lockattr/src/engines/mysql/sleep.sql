-- Sleeps until a client interrupts this call because it has sent notifications, or for p_seconds.
-- The lock is held by another connection of the process. Looks for notifications in a statement of
-- its own: a statement that reads and then sleeps would keep the old versions of all rows.
--
-- Returns NULL if there are notifications, 0 after p_seconds, 1 if the lock is free.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_sleep(
  IN p_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, IN p_seconds INT)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_waiting, v_slept INT;
  SELECT COUNT(*) INTO v_waiting
    FROM (SELECT 1 FROM lockattr_v2_notifications WHERE listener = p_listener LIMIT 1) AS first;
  IF v_waiting = 0 THEN
    SET v_slept = GET_LOCK(CONCAT('lockattr:sleep:', p_listener), p_seconds);
  END IF;
  SELECT v_slept;
END
