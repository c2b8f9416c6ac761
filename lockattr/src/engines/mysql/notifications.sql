-- Returns the messages for a listening connection, and deletes them.
CREATE PROCEDURE lockattr_v1_news(IN p_ear VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin)
  SQL SECURITY INVOKER
BEGIN
  UPDATE lockattr_news SET taken = 1 WHERE ear = p_ear;
  SELECT inbox, message FROM lockattr_news WHERE ear = p_ear AND taken = 1 ORDER BY id;
  DELETE FROM lockattr_news WHERE ear = p_ear AND taken = 1;
END
