-- Stores a message for a listening connection, if it still exists. Its process holds a lock of that
-- name for as long as it lives; the number after the colon is the id of the connection to wake,
-- which is added to p_wakes.
CREATE PROCEDURE lockattr_v1_tell(
  IN p_ear VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, IN p_token VARBINARY(32),
  IN p_message VARBINARY(8300), INOUT p_wakes LONGTEXT CHARACTER SET ascii COLLATE ascii_bin,
  OUT p_delivered INT)
  SQL SECURITY INVOKER
BEGIN
  SET p_delivered = 0;
  IF p_ear <> '' AND IS_USED_LOCK(CONCAT('lockattr:', p_ear)) IS NOT NULL THEN
    INSERT INTO lockattr_news (ear, inbox, message) VALUES (p_ear, LEFT(p_token, 16), p_message);
    SET p_delivered = 1;
    IF FIND_IN_SET(SUBSTRING(p_ear, 18), p_wakes) = 0 THEN
      SET p_wakes = CONCAT(p_wakes, SUBSTRING(p_ear, 18), ',');
    END IF;
  END IF;
END
