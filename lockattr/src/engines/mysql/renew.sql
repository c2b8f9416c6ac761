-- Extends leases that the claims still hold, each by its own TTL. The claims are encoded as in
-- lockattr_v2_release_each, with the TTL as the last number.
--
-- Returns a string: 1 for each claim that still has all its locks, else 0.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_renew(IN p_items LONGBLOB)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_length, v_count, v_held INT;
  DECLARE v_now, v_ttl BIGINT;
  DECLARE v_names LONGBLOB;
  DECLARE v_id BINARY(32);
  DECLARE v_token VARBINARY(32);
  DECLARE v_results LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  WHILE LENGTH(p_items) > 0 DO
    SET v_count = LEFT(p_items, 4), v_held = 0, v_length = SUBSTRING(p_items, 5, 8);
    SET v_names = SUBSTRING(p_items, 13, v_length);
    SET v_token = SUBSTRING(p_items, 13 + v_length, 32);
    SET v_ttl = SUBSTRING(p_items, 45 + v_length, 20), p_items = SUBSTRING(p_items, 65 + v_length);
    WHILE LENGTH(v_names) > 0 DO
      IF v_count = 1 THEN
        SET v_id = UNHEX(SHA2(v_names, 256)), v_names = '';
      ELSE
        SET v_length = LEFT(v_names, 8);
        SET v_id = UNHEX(SHA2(SUBSTRING(v_names, 9, v_length), 256));
        SET v_names = SUBSTRING(v_names, 9 + v_length);
      END IF;
      SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
      -- Never shortens a lease: a renewal may overtake a longer one that `extend` sent. Always
      -- changes the row, because a client may count the changed rows or the found ones.
      UPDATE lockattr_v2_locks SET ends = GREATEST(ends + 1, v_now + v_ttl)
        WHERE id = v_id AND seat IN ('', v_token) AND token = v_token AND ends > v_now;
      SET v_held = v_held + ROW_COUNT();
    END WHILE;
    SET v_results = CONCAT(v_results, v_held = v_count);
  END WHILE;
  COMMIT;
  SELECT v_results;
END
