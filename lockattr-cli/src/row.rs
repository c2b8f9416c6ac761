//! One held lock as plain data, for tables and JSON.

use std::time::{Duration, SystemTime};

use lockattr::{HeldLock, Holder};
use serde::{Serialize, Serializer};

use crate::span::YEAR_10_000;

/// A held lock at the time of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) holder: Who,
    /// The number of holders that share it or have a permit; 1 otherwise.
    pub(crate) holders: u32,
    pub(crate) shared: bool,
    /// Whether the holder has done its work, and the key stays done while its lease remains.
    pub(crate) done: bool,
    #[serde(serialize_with = "timestamp")]
    pub(crate) since: Option<SystemTime>,
    #[serde(rename = "remaining_ms", serialize_with = "millis")]
    pub(crate) remaining: Option<Duration>,
    pub(crate) waiting: u64,
    /// As text: JavaScript, and `jq` before 1.7, have 53 bits for a number.
    #[serde(serialize_with = "text")]
    pub(crate) fencing_token: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Who {
    /// What `release --force --holder` takes.
    pub(crate) id: String,
    pub(crate) service: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) process: Option<u32>,
    pub(crate) function: Option<String>,
}

impl Who {
    /// `orders@web-3:17`; unknown parts are left out.
    pub(crate) fn brief(&self) -> String {
        let mut text = self.service.clone().unwrap_or_default();
        for (mark, part) in
            [('@', self.host.clone()), (':', self.process.map(|process| process.to_string()))]
        {
            if let Some(part) = part {
                text.push(mark);
                text.push_str(&part);
            }
        }
        if text.is_empty() { "-".into() } else { text }
    }

    /// The parts that sort holders and tell them apart.
    pub(crate) fn parts(&self) -> (&Option<String>, &Option<String>, &Option<u32>) {
        (&self.service, &self.host, &self.process)
    }
}

impl From<Holder> for Who {
    fn from(holder: Holder) -> Self {
        let Holder { id, service, host, process, function, .. } = holder;
        Self { id: id.to_string(), service, host, process, function }
    }
}

impl From<HeldLock> for Row {
    fn from(held: HeldLock) -> Self {
        Self {
            since: held.holder.since,
            remaining: held.holder.remaining,
            done: held.holder.done,
            key: held.key,
            holder: held.holder.into(),
            holders: held.holders,
            shared: held.shared,
            waiting: held.waiting,
            fencing_token: held.fencing_token.map(u64::from),
        }
    }
}

pub(crate) fn timestamp<S: Serializer>(at: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
    match at {
        // There is no such text beyond the year 9999, and a foreign label may contain any value.
        Some(at) if at.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|at| at < YEAR_10_000) => {
            to.collect_str(&humantime::format_rfc3339_millis(*at))
        }
        _ => to.serialize_none(),
    }
}

pub(crate) fn millis<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => to.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        None => to.serialize_none(),
    }
}

fn text<S: Serializer>(number: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => to.collect_str(number),
        None => to.serialize_none(),
    }
}

/// For the tests of code that uses rows.
#[cfg(test)]
pub(crate) fn sample(key: &str, label: &str) -> Row {
    HeldLock::new(key, Holder::from_value(label, Some(Duration::from_millis(8_250)))).into()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_row_is_one_object_in_json() {
        let mut row = sample("product:42", "since=0 service=orders host=web-3 pid=17 function=f");
        (row.waiting, row.fencing_token) = (3, Some(u64::MAX >> 1));
        expect![[r#"{"key":"product:42","holder":{"id":"5a0a70181794f0a4","service":"orders","host":"web-3","process":17,"function":"f"},"holders":1,"shared":false,"done":false,"since":"1970-01-01T00:00:00.000Z","remaining_ms":8250,"waiting":3,"fencing_token":"9223372036854775807"}"#]]
            .assert_eq(&serde_json::to_string(&row).unwrap());
    }

    /// Red without: `YEAR_10_000`; a foreign label panics in `humantime`.
    #[test]
    fn a_holder_that_says_nonsense_of_itself_is_shown_all_the_same() {
        let row = sample("k", &format!("since={}", u64::MAX));
        expect![[r#"{"key":"k","holder":{"id":"e4192d9e84fb9748","service":null,"host":null,"process":null,"function":null},"holders":1,"shared":false,"done":false,"since":null,"remaining_ms":8250,"waiting":0,"fencing_token":null}"#]]
            .assert_eq(&serde_json::to_string(&row).unwrap());
        assert_eq!(row.holder.brief(), "-");
    }
}
