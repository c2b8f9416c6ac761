-- Created last: if it exists, everything else does.
CREATE PROCEDURE lockattr_v1_ready()
  SQL SECURITY INVOKER
BEGIN
  SELECT CONNECTION_ID();
END
