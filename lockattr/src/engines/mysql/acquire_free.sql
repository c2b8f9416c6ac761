-- Acquires free exclusive locks, each for another claim and by itself. p_items has for each: the
-- lengths of its name and its value in 8 digits each, the name, the token, the value, the TTL in 20
-- digits. All messages go to p_listener.
--
-- Returns a string: 20 digits for each, the fencing number, or zero if the lock is not free.
--
-- Only for MySQL. In MariaDB a plain INSERT returns what it has inserted, and the number.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_acquire_free(
  IN p_items LONGBLOB, IN p_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin)
  SQL SECURITY INVOKER
BEGIN
  DECLARE v_now BIGINT;
  DECLARE v_name, v_value INT;
  DECLARE v_id BINARY(32);
  DECLARE v_numbers LONGTEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  WHILE LENGTH(p_items) > 0 DO
    SET v_name = LEFT(p_items, 8), v_value = SUBSTRING(p_items, 9, 8);
    SET v_id = UNHEX(SHA2(SUBSTRING(p_items, 17, v_name), 256));
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6));
    INSERT IGNORE INTO lockattr_v2_locks
      (id, seat, name, mode, token, value, listener, ends, waiting, holders)
      VALUES (v_id, '', SUBSTRING(p_items, 17, v_name), 'x', SUBSTRING(p_items, 17 + v_name, 32),
        SUBSTRING(p_items, 49 + v_name, v_value), p_listener,
        v_now + SUBSTRING(p_items, 49 + v_name + v_value, 20), 0, 1);
    -- A row that was found does not count here, whatever the client asks for.
    IF ROW_COUNT() = 1 THEN
      INSERT INTO lockattr_v2_numbers (slot, last) VALUES (ORD(v_id), LAST_INSERT_ID(v_now))
        ON DUPLICATE KEY UPDATE last = LAST_INSERT_ID(GREATEST(last + 1, v_now));
      SET v_numbers = CONCAT(v_numbers, LPAD(LAST_INSERT_ID(), 20, '0'));
    ELSE
      SET v_numbers = CONCAT(v_numbers, '00000000000000000000');
    END IF;
    SET p_items = SUBSTRING(p_items, 69 + v_name + v_value);
  END WHILE;
  COMMIT;
  SELECT v_numbers;
END
