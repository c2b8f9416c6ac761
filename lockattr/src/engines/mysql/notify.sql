-- Stores a message for a listening connection, if it still exists. Its process holds a lock of that
-- name for as long as it lives; the number after the colon is the id of the connection to wake,
-- which is added to p_wakes.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_notify(
  IN p_listener VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, IN p_token VARBINARY(32),
  IN p_message BLOB, INOUT p_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin,
  OUT p_delivered INT)
  SQL SECURITY INVOKER
BEGIN
  SET p_delivered = 0;
  IF p_listener <> '' AND IS_USED_LOCK(CONCAT('lockattr:', p_listener)) IS NOT NULL THEN
    INSERT INTO lockattr_v2_notifications (listener, id, subscriber, message)
      VALUES (p_listener, UUID_SHORT(), LEFT(p_token, 16), p_message);
    SET p_delivered = 1;
    IF FIND_IN_SET(SUBSTRING(p_listener, 18), p_wakes) = 0 THEN
      SET p_wakes = CONCAT(p_wakes, SUBSTRING(p_listener, 18), ',');
    END IF;
  END IF;
END
