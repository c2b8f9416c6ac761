//! Time spans as shown in a column: two units at most.

use std::time::{Duration, SystemTime};

/// `85ms`, `7.3s`, `42s`, `3m12s`, `2h03m`, `4d02h`.
pub(crate) fn brief(span: Duration) -> String {
    let (seconds, millis) = (span.as_secs(), span.subsec_millis());
    match seconds {
        0 => format!("{millis}ms"),
        1..10 => format!("{seconds}.{}s", millis / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// The end of a period that began at `now`, in UTC and as short as it is clear: `03:00Z` within a day,
/// `11-28T03:00Z` within a year, else `2027-11-28`. `None` for a time that cannot be written.
pub(crate) fn end(now: SystemTime, remaining: Duration) -> Option<String> {
    let text = rfc3339(now, remaining)?;
    Some(match remaining.as_secs() {
        ..DAY => format!("{}Z", &text[11..16]),
        DAY..YEAR => format!("{}Z", &text[5..16]),
        _ => text[..10].to_owned(),
    })
}

/// The same as a whole, such as `2026-11-27T03:00:00Z`.
pub(crate) fn rfc3339(now: SystemTime, remaining: Duration) -> Option<String> {
    let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let end = since_1970.checked_add(remaining).filter(|end| *end < YEAR_10_000)?;
    Some(humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + end).to_string())
}

/// In seconds.
const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;

/// There is no such text beyond it, and a foreign key may have any end.
pub(crate) const YEAR_10_000: Duration = Duration::from_secs(253_402_300_800);

/// How far a holder's clock may be ahead of ours.
const AHEAD: Duration = Duration::from_secs(86_400);

/// The time since `since`; zero if that is in the future by a little, because clocks differ, and
/// nothing if it is later than that.
pub(crate) fn age(since: SystemTime, now: SystemTime) -> Option<Duration> {
    match now.duration_since(since) {
        Ok(age) => Some(age),
        Err(ahead) => (ahead.duration() <= AHEAD).then_some(Duration::ZERO),
    }
}

/// The longest time that every clock can wait for.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Reads `30s`, `1m30s`, `500ms` and a bare `0`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    match humantime::parse_duration(text) {
        Ok(span) if span <= LONGEST => Ok(span),
        Ok(_) => Err("at most a hundred years are allowed".to_owned()),
        Err(_) => Err("write it like `30s`, `1m30s` or `500ms`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(millis: u64, expected: &str) {
        assert_eq!(brief(Duration::from_millis(millis)), expected);
    }

    #[test]
    fn a_span_has_two_units_at_most() {
        check(0, "0ms");
        check(999, "999ms");
        check(1_000, "1.0s");
        check(9_999, "9.9s");
        check(59_999, "59s");
        check(60_000, "1m00s");
        check(3_599_000, "59m59s");
        check(3_600_000, "1h00m");
        check(86_399_000, "23h59m");
        check(93_600_000, "1d02h");
        check(u64::MAX, "213503982334d14h");
    }

    /// Red without: any of the arms in `end`, or the filter in `rfc3339`.
    #[test]
    fn the_end_of_a_period_is_short_and_clear() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let shown = |seconds| end(now, Duration::from_secs(seconds));
        assert_eq!(shown(0).as_deref(), Some("01:46Z"));
        assert_eq!(shown(86_399).as_deref(), Some("01:46Z"));
        assert_eq!(shown(86_400).as_deref(), Some("09-10T01:46Z"));
        assert_eq!(shown(400 * 86_400).as_deref(), Some("2002-10-14"));
        assert_eq!(shown(u64::MAX), None);
        assert_eq!(shown(300_000_000_000), None);
        let whole = rfc3339(now, Duration::from_secs(60));
        assert_eq!(whole.as_deref(), Some("2001-09-09T01:47:40Z"));
    }

    /// Red without: `AHEAD`.
    #[test]
    fn a_hold_that_begins_in_the_future_has_no_age() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert_eq!(age(now - Duration::from_secs(3), now), Some(Duration::from_secs(3)));
        assert_eq!(age(now + Duration::from_secs(3_600), now), Some(Duration::ZERO));
        assert_eq!(age(now + Duration::from_secs(86_401), now), None);
        let year_300_000_000 =
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(u64::MAX / 2));
        assert_eq!(year_300_000_000.and_then(|since| age(since, now)), None);
    }

    #[test]
    fn a_span_is_read_as_everywhere_else_or_refused_with_an_example() {
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert!(parse("30").unwrap_err().contains("`30s`"));
        assert!(parse("101 years").unwrap_err().contains("hundred years"));
    }
}
