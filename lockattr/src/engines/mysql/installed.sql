-- Created last: if it exists, everything else does. Each new connection calls it. Its name changes with
-- each procedure that is added to this version, because the former one may exist without that.
CREATE PROCEDURE IF NOT EXISTS lockattr_v2_start_3()
  SQL SECURITY INVOKER
BEGIN
  -- Never lowers the sequence. A restored backup, or a replica that takes over, has old numbers.
  /*M! EXECUTE IMMEDIATE CONCAT('DO SETVAL(lockattr_v2_numbers, ',
    TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)), ')'); */
  DO 0;
END
