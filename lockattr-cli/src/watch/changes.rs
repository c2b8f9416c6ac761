//! The changes from one query to the next. Pure.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;

use crate::row::{self, Row, Who};
use crate::span::rfc3339;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Change {
    #[serde(serialize_with = "row::timestamp")]
    pub(super) at: Option<SystemTime>,
    pub(super) event: Event,
    /// The previous holder, if the lock was handed off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<Who>,
    #[serde(flatten)]
    pub(super) lock: Row,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// It was already held at the first query.
    Held,
    Acquired,
    HandedOff,
    /// Its key is done now, or was done already at the first query.
    Done,
    Released,
}

impl Change {
    fn new(event: Event, lock: Row, at: SystemTime) -> Self {
        Self { at: Some(at), event, previous: None, lock }
    }

    /// One line of text.
    pub(super) fn line(&self) -> String {
        let at = self.at.map(|at| humantime::format_rfc3339_seconds(at).to_string());
        let (event, holder) = match self.event {
            Event::Held => ("held", "by"),
            Event::Acquired => ("acquired", "by"),
            Event::HandedOff => ("handed off", "to"),
            Event::Done => ("done", "by"),
            Event::Released => ("released", "by"),
        };
        let mut line = format!(
            "{} {event:<10} {} {holder} {}",
            at.unwrap_or_default(),
            self.lock.key,
            self.lock.holder.brief()
        );
        let remaining = self.lock.remaining.filter(|_| self.event == Event::Done);
        let end = self.at.zip(remaining).and_then(|(at, remaining)| rfc3339(at, remaining));
        if let Some(end) = end {
            line.push_str(&format!(" until {end}"));
        }
        if let Some(previous) = &self.previous {
            line.push_str(&format!(" from {}", previous.brief()));
        }
        line
    }
}

/// The result of the last query.
#[derive(Debug, Default)]
pub(super) struct Seen(Option<BTreeMap<String, Row>>);

impl Seen {
    /// The changes since then, by key.
    pub(super) fn changes(&mut self, rows: &[Row], at: SystemTime) -> Vec<Change> {
        let now: BTreeMap<_, _> = rows.iter().map(|row| (row.key.clone(), row.clone())).collect();
        let Some(before) = self.0.replace(now) else {
            let event = |row: &Row| if row.done { Event::Done } else { Event::Held };
            return rows.iter().map(|row| Change::new(event(row), row.clone(), at)).collect();
        };
        let now = self.0.iter().flatten();
        let mut changes: Vec<_> = now
            .filter_map(|(key, row)| match before.get(key) {
                Some(old) if is_same(old, row) => None,
                _ if row.done => Some(Change::new(Event::Done, row.clone(), at)),
                None => Some(Change::new(Event::Acquired, row.clone(), at)),
                Some(old) => {
                    let mut change = Change::new(Event::HandedOff, row.clone(), at);
                    change.previous = Some(old.holder.clone());
                    Some(change)
                }
            })
            .collect();
        let now =
            self.0.iter().flatten().map(|(key, _)| key).collect::<std::collections::BTreeSet<_>>();
        let released = before.into_iter().filter(|(key, _)| !now.contains(key));
        changes.extend(released.map(|(_, row)| Change::new(Event::Released, row, at)));
        changes.sort_by(|one, other| one.lock.key.cmp(&other.lock.key));
        changes
    }
}

/// Whether the holder is the same, and its work is as done as before. Of a shared lock only one holder is reported, which may differ
/// each time, so two reports of it count as the same.
fn is_same(old: &Row, new: &Row) -> bool {
    let who = |row: &Row| (row.holder.clone(), row.since, row.fencing_token, row.done);
    (old.shared && new.shared) || who(old) == who(new)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;
    use crate::row::sample;

    /// The changes between what is seen in each second, from the first on.
    fn changes_of(seconds: &[&[(&str, &str)]]) -> Vec<Change> {
        let mut seen = Seen::default();
        let queries = (1..).zip(seconds).flat_map(|(second, labels)| {
            let rows: Vec<_> = labels.iter().map(|(key, label)| sample(key, label)).collect();
            seen.changes(&rows, SystemTime::UNIX_EPOCH + Duration::from_secs(second))
        });
        queries.collect()
    }

    #[test]
    fn each_change_is_notified_once() {
        let all = changes_of(&[
            &[("a", "service=x pid=1"), ("b", "service=x pid=1")],
            &[("a", "service=x pid=1"), ("b", "service=y pid=2"), ("c", "service=z")],
            &[("b", "service=y pid=2"), ("c", "service=z")],
            &[],
        ]);
        let lines: Vec<_> = all.iter().map(Change::line).collect();
        expect![[r#"
            1970-01-01T00:00:01Z held       a by x:1
            1970-01-01T00:00:01Z held       b by x:1
            1970-01-01T00:00:02Z handed off b to y:2 from x:1
            1970-01-01T00:00:02Z acquired   c by z
            1970-01-01T00:00:03Z released   a by x:1
            1970-01-01T00:00:04Z released   b by y:2
            1970-01-01T00:00:04Z released   c by z
        "#]]
        .assert_eq(&(lines.join("\n") + "\n"));
        expect![[r#"{"at":"1970-01-01T00:00:02.000Z","event":"acquired","key":"c","holder":{"id":"e75e815638563c46","service":"z","host":null,"process":null,"function":null},"holders":1,"shared":false,"done":false,"since":null,"remaining_ms":8250,"waiting":0,"fencing_token":null}"#]].assert_eq(&serde_json::to_string(&all[3]).unwrap());
    }

    /// Red without: `done` in `is_same`, or the arm in `changes`.
    #[test]
    fn a_key_that_becomes_done_is_a_change_and_stays_so_without_another() {
        let all = changes_of(&[
            &[("a", "service=x"), ("b", "service=y done=1")],
            &[("a", "service=x done=1"), ("b", "service=y done=1")],
            &[("a", "service=x done=1"), ("c", "service=z done=1")],
            &[("a", "service=y"), ("c", "service=z done=1")],
        ]);
        let lines: Vec<_> = all.iter().map(Change::line).collect();
        expect![[r#"
            1970-01-01T00:00:01Z held       a by x
            1970-01-01T00:00:01Z done       b by y until 1970-01-01T00:00:09Z
            1970-01-01T00:00:02Z done       a by x until 1970-01-01T00:00:10Z
            1970-01-01T00:00:03Z released   b by y
            1970-01-01T00:00:03Z done       c by z until 1970-01-01T00:00:11Z
            1970-01-01T00:00:04Z handed off a to y from x
        "#]]
        .assert_eq(&(lines.join("\n") + "\n"));
        assert!(serde_json::to_string(&all[2]).unwrap().contains(r#""event":"done""#));
    }

    #[test]
    fn another_of_those_who_share_a_lock_is_no_change() {
        let mut seen = Seen::default();
        let shared = |label| {
            let mut row = sample("a", label);
            row.shared = true;
            [row]
        };
        let now = SystemTime::UNIX_EPOCH;
        seen.changes(&shared("service=x"), now);
        assert!(seen.changes(&shared("service=y"), now).is_empty());
    }
}
