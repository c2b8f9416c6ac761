-- Puts a message where the listening connection of a subscriber finds it, if there is one still: it goes
-- by the name of a lock that its process holds for as long as it lives, and the number behind the
-- colon is its id. Who is to be woken is added to a list.
CREATE PROCEDURE lockattr_v1_tell(
  IN p_ear VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, IN p_token VARBINARY(32),
  IN p_message VARBINARY(8300), INOUT p_bells LONGTEXT CHARACTER SET ascii COLLATE ascii_bin,
  OUT p_heard INT)
  SQL SECURITY INVOKER
BEGIN
  SET p_heard = 0;
  IF p_ear <> '' AND IS_USED_LOCK(CONCAT('lockattr:', p_ear)) IS NOT NULL THEN
    INSERT INTO lockattr_news (ear, inbox, message) VALUES (p_ear, LEFT(p_token, 16), p_message);
    SET p_heard = 1;
    IF FIND_IN_SET(SUBSTRING(p_ear, 18), p_bells) = 0 THEN
      SET p_bells = CONCAT(p_bells, SUBSTRING(p_ear, 18), ',');
    END IF;
  END IF;
END
