-- Made last: where it is, all is.
CREATE PROCEDURE lockattr_v1_ready()
  SQL SECURITY INVOKER
BEGIN
  SELECT CONNECTION_ID();
END
