-- Removes what processes left without a release, up to 20 locks per call: leases that ended over a
-- minute ago, and the queue entries of processes that are gone.
CREATE PROCEDURE lockattr_v1_sweep()
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_now, v_ends, v_number BIGINT;
  DECLARE v_id BINARY(32);
  DECLARE v_mode VARBINARY(1);
  DECLARE v_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_served, v_rounds INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)), v_ends = 0;
  WHILE v_rounds < 20 AND v_ends IS NOT NULL DO
    SET v_rounds = v_rounds + 1, v_mode = NULL, v_wakes = '', v_number = v_ends, v_ends = NULL;
    SELECT id, ends INTO v_id, v_ends FROM lockattr_locks
      WHERE ends > v_number AND ends < v_now - 60000000 ORDER BY ends LIMIT 1;
    IF v_ends IS NOT NULL THEN
      START TRANSACTION;
      SELECT mode INTO v_mode FROM lockattr_locks WHERE id = v_id AND seat = '' FOR UPDATE;
      IF v_mode IS NOT NULL THEN
        CALL lockattr_v1_expire(v_id, v_now);
        CALL lockattr_v1_serve(v_id, NULL, v_now, v_wakes, v_number, v_served);
      END IF;
      COMMIT;
      CALL lockattr_v1_ring(v_wakes);
    END IF;
  END WHILE;
  SELECT v_rounds;
END
