//! The counts on top of the view. Pure.

use std::collections::BTreeSet;
use std::time::SystemTime;

use crate::row::{Row, Who};
use crate::span::{age, brief};

/// `10,000 held · 57 waiting · longest for 3h12m`, and the number of keys that are done if there are any.
pub(super) fn what(rows: &[Row], now: SystemTime) -> String {
    let waiting: u64 = rows.iter().map(|row| row.waiting).sum();
    let waiting = grouped(usize::try_from(waiting).unwrap_or(usize::MAX));
    let held = || rows.iter().filter(|row| !row.done);
    let (count, done) = (held().count(), rows.iter().filter(|row| row.done).count());
    let mut line = format!("{} held", grouped(count));
    if done > 0 {
        line.push_str(&format!(" · {} done", grouped(done)));
    }
    line.push_str(&format!(" · {waiting} waiting"));
    if let Some(age) = held().filter_map(|row| age(row.since?, now)).max() {
        line.push_str(&format!(" · longest for {}", brief(age)));
    }
    line
}

/// `by 12 processes, 3 services, 4 hosts`
pub(super) fn who(rows: &[Row]) -> String {
    fn count<T: Ord>(values: impl Iterator<Item = T>) -> usize {
        values.collect::<BTreeSet<_>>().len()
    }
    let who = || rows.iter().map(|row| &row.holder);
    let processes = count(who().filter(|who| who.process.is_some()).map(Who::parts));
    let services = count(who().filter_map(|who| who.service.as_ref()));
    let hosts = count(who().filter_map(|who| who.host.as_ref()));
    format!(
        "by {}, {}, {}",
        counted(processes, "process", "processes"),
        counted(services, "service", "services"),
        counted(hosts, "host", "hosts"),
    )
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// By thousands.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::row::sample;

    #[test]
    fn the_counts_are_notified_in_two_lines() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(what(&[], now), "0 held · 0 waiting");
        assert_eq!(who(&[]), "by 0 processes, 0 services, 0 hosts");
        let mut rows = vec![
            sample("a", "since=40000 service=x host=h pid=1"),
            sample("b", "since=50000 service=x host=h pid=1"),
            sample("c", "since=50000 service=y host=h pid=2"),
            sample("d", ""),
        ];
        rows[1].waiting = 1_234;
        assert_eq!(what(&rows, now), "4 held · 1,234 waiting · longest for 1m00s");
        assert_eq!(who(&rows), "by 2 processes, 2 services, 1 host");
        rows.push(sample("e", "since=1 service=x host=h pid=1 done=1"));
        assert_eq!(what(&rows, now), "4 held · 1 done · 1,234 waiting · longest for 1m00s");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let grouped: Vec<_> = [0, 999, 1_000, 12_345, 1_234_567].map(grouped).into();
        assert_eq!(grouped, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
