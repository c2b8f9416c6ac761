//! `lockattr who`: shows one lock and its holder.

use std::time::{Duration, SystemTime};

use clap::Args;
use lockattr::{Holder, LockManager};
use serde::Serialize;

use crate::exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::row::{self, Who as Named};
use crate::span::rfc3339;

const AFTER: &str = "\
Exit codes: 0 held or done; 1 free; 2 the store did not answer, or has something else than a lock under this \
name.

A key that is done is held so that no other process repeats the work, until the time that is printed. \
`lockattr release KEY` prints the command that reopens it.

With --json, one object: key, held, done (then held is true too), holder {id, service, host, \
process, function}, since (RFC 3339), remaining_ms (null if held: the lease never ends).

Examples:
  lockattr who product:42
  lockattr who nightly >/dev/null && echo 'still running, or done'";

/// Show the holder of a lock
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Who {
    /// The key, as the services write it, without the prefix
    key: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Who {
    pub(crate) async fn execute(self, manager: &LockManager) -> Result<u8, Failure> {
        let holder = manager.holder(&self.key).await?;
        let mut output = Output::new();
        if self.json {
            output.json(&Answer::new(&self.key, holder.clone()))?;
        } else {
            output.line(&description(&self.key, holder.as_ref()))?;
        }
        output.finish()?;
        Ok(if holder.is_some() { exit::OK } else { exit::FREE })
    }
}

/// One lock in words.
pub(crate) fn description(key: &str, holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => format!("`{key}` is {}", state(holder, SystemTime::now())),
        None => format!("`{key}` is free"),
    }
}

/// `held by …`, or `done until …, by …`.
pub(crate) fn state(holder: &Holder, now: SystemTime) -> String {
    if !holder.done {
        return format!("held by {holder}");
    }
    let mut who = holder.clone();
    (who.done, who.since, who.remaining) = (false, None, None);
    match holder.remaining.and_then(|remaining| rfc3339(now, remaining)) {
        Some(end) => format!("done until {end}, by {who}"),
        None => format!("done, by {who}"),
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    key: &'a str,
    held: bool,
    /// Whether the holder has done its work, and the key stays done while its lease remains.
    done: bool,
    holder: Option<Named>,
    #[serde(serialize_with = "row::timestamp")]
    since: Option<SystemTime>,
    #[serde(rename = "remaining_ms", serialize_with = "row::millis")]
    remaining: Option<Duration>,
}

impl<'a> Answer<'a> {
    fn new(key: &'a str, holder: Option<Holder>) -> Self {
        Self {
            key,
            held: holder.is_some(),
            done: holder.as_ref().is_some_and(|holder| holder.done),
            since: holder.as_ref().and_then(|holder| holder.since),
            remaining: holder.as_ref().and_then(|holder| holder.remaining),
            holder: holder.map(Named::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_lock_is_notified_in_words_and_as_an_object() {
        let ends = Some(Duration::from_millis(7_000));
        let holder = Holder::from_value("service=orders host=web-3 pid=17 function=f", ends);
        expect!["`product:42` is held by orders on web-3 (process 17) in f, its lease ends in 7s"]
            .assert_eq(&description("product:42", Some(&holder)));
        expect!["`product:42` is free"].assert_eq(&description("product:42", None));

        let now = SystemTime::UNIX_EPOCH;
        let mut done = Holder::from_value("since=0 service=orders host=web-3 done=1", ends);
        expect!["done until 1970-01-01T00:00:07Z, by orders on web-3"]
            .assert_eq(&state(&done, now));
        done.remaining = None;
        expect!["done, by orders on web-3"].assert_eq(&state(&done, now));

        let json = |holder| serde_json::to_string(&Answer::new("product:42", holder)).unwrap();
        expect![[r#"{"key":"product:42","held":true,"done":false,"holder":{"id":"4f74122033ba52e0","service":"orders","host":"web-3","process":17,"function":"f"},"since":null,"remaining_ms":7000}"#]]
            .assert_eq(&json(Some(holder)));
        expect![[r#"{"key":"product:42","held":false,"done":false,"holder":null,"since":null,"remaining_ms":null}"#]]
        .assert_eq(&json(None));
        expect![[r#"{"key":"product:42","held":true,"done":true,"holder":{"id":"809b194557f649bb-done","service":"orders","host":"web-3","process":null,"function":null},"since":"1970-01-01T00:00:00.000Z","remaining_ms":null}"#]].assert_eq(&json(Some(done)));
    }
}
