-- Removes what processes left without a release: leases that ended over a minute ago, and the queue
-- entries of processes that are gone. Reads the next 200 rows after p_from.
--
-- Returns where the next call continues.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_sweep(IN p_from VARBINARY(32))
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_now, v_number BIGINT;
  DECLARE v_id, v_last BINARY(32);
  DECLARE v_ids LONGBLOB;
  DECLARE v_mode VARBINARY(1);
  DECLARE v_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_count, v_served INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
  SELECT COUNT(*), MAX(id), UNHEX(GROUP_CONCAT(IF(old, HEX(id), NULL) SEPARATOR ''))
    INTO v_count, v_last, v_ids
    FROM (SELECT id, ends < v_now - 60000000 AS old FROM lockattr_v2_locks
      WHERE id > p_from ORDER BY id LIMIT 200) AS part;
  WHILE LENGTH(v_ids) > 0 DO
    SET v_id = LEFT(v_ids, 32), v_ids = SUBSTRING(v_ids, 33), v_mode = NULL, v_wakes = '';
    START TRANSACTION;
    SELECT mode INTO v_mode FROM lockattr_v2_locks WHERE id = v_id AND seat = '' FOR UPDATE;
    IF v_mode IS NOT NULL THEN
      CALL lockattr_v2_expire(v_id, v_now);
      CALL lockattr_v2_hand_off(v_id, NULL, v_now, v_wakes, v_number, v_served);
    END IF;
    COMMIT;
    CALL lockattr_v2_wake(v_wakes);
  END WHILE;
  SELECT IF(v_count < 200, '', v_last);
END
