//! The holder of a lock: the label in the lock's value, and how it is parsed.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::lock::digits::decimal;
use crate::lock::holder_id::HolderId;
use crate::lock::printable::printable;
#[cfg(feature = "share")]
use crate::lock::result_word::ResultWord;
use crate::lock::term_word::TermWord;
use crate::platform::entropy::since_1970;

/// Characters that would break the `name=value` words of a label.
const RESERVED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'=');

/// The holder of a lock, since when it holds it, and for how much longer.
///
/// All fields but [`id`](field@Self::id) are what the holder wrote about itself. For a lock that another program took,
/// only `id` and `remaining` are known.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::builder().url("memory://").service("orders").build()?;
/// let guard = manager.acquire("product:42", LockOptions::new()).await?;
///
/// let holder = manager.holder("product:42").await?.expect("we hold it");
/// assert_eq!(holder.service.as_deref(), Some("orders"));
/// assert_eq!(holder.process, Some(std::process::id()));
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
///
/// With the feature `serde`, `id` is text, and `since` and `remaining` have serde's own forms for `SystemTime` and
/// `Duration`. A field that is `None` is left out, and so is `done` if it is `false`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct Holder {
    /// What names this holder, and no later one, for [`force_release`](crate::LockManager::force_release). With session
    /// locks in PostgreSQL and MySQL (`lock=session`) it names the session instead.
    pub id: HolderId,
    /// The service's name, as set on its manager; the program's name by default.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub service: Option<String>,
    /// The host on which it runs.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub host: Option<String>,
    /// Its process id.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub process: Option<u32>,
    /// The calling function: the annotated one, or the one that [`LockOptions::function`] named.
    ///
    /// [`LockOptions::function`]: crate::LockOptions::function
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub function: Option<String>,
    /// When it requested the lock, by its own clock.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub since: Option<SystemTime>,
    /// How long the lease still runs without a renewal; `None` if it never ends.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub remaining: Option<Duration>,
    /// Whether the holder has done its work, and the key stays *done* for the
    /// [`remaining`](field@Self::remaining) time: the lock is held so that no other process repeats
    /// the work. See [`Store::mark_done`](crate::store::Store::mark_done). Then the `id` is that of the mark.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub done: bool,
    /// What it waits for, if this was read from a deadlock-detection note.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) waits: Option<Box<Waits>>,
    /// The term that it leads, if this was read from a leader's note.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) term: Option<TermWord>,
    /// The result of a body, if this was read from its note.
    #[cfg(feature = "share")]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) result: Option<Box<ResultWord>>,
}

/// What a call waits for, in a form that other processes can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Unique to this call.
    pub(crate) id: u64,
    /// Since when it holds the lock to which the note belongs, as that lock's own value states.
    pub(crate) holds_since: u64,
    pub(crate) names: Vec<String>,
}

impl Waits {
    /// A word for a label, with a leading space.
    pub(crate) fn to_word(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|name| encoded(name)).collect();
        format!(" waits={}/{}/{}", self.id, self.holds_since, encoded(&names.join(" ")))
    }

    fn read(word: &str) -> Option<Self> {
        let (id, rest) = word.split_once('/')?;
        let (since, names) = rest.split_once('/')?;
        let (id, holds_since) = (id.parse().ok()?, since.parse().ok()?);
        let name = |name| percent_decode_str(name).decode_utf8_lossy().into_owned();
        Some(Self { id, holds_since, names: names.split(' ').map(name).collect() })
    }
}

impl Holder {
    /// Parses the label in a lock's value, and skips unknown words. What cannot be
    /// [printed](crate::printable) is replaced.
    pub fn from_value(value: &str, remaining: Option<Duration>) -> Self {
        let mut holder = Self { id: HolderId::of(value), remaining, ..Self::default() };
        for word in value.split(' ') {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            #[cfg(feature = "share")]
            if name == "result" {
                holder.result = ResultWord::read(value).map(Box::new);
                continue;
            }
            let value = percent_decode_str(value).decode_utf8_lossy();
            // Other programs write labels too, and these appear in errors and logs.
            let value = printable(&value).into_owned();
            match name {
                "service" => holder.service = Some(value),
                "host" => holder.host = Some(value),
                "pid" => holder.process = value.parse().ok(),
                "waits" => holder.waits = Waits::read(&value).map(Box::new),
                "term" => holder.term = TermWord::read(&value),
                "function" => holder.function = Some(value),
                "done" => holder.done = value == "1",
                "since" => {
                    let since = value.parse().ok().map(Duration::from_millis);
                    holder.since = since.and_then(|ms| SystemTime::UNIX_EPOCH.checked_add(ms));
                }
                _ => {}
            }
        }
        holder
    }

    /// The same for the bytes of another program, which may be no text.
    #[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
    pub(crate) fn from_bytes(value: &[u8], remaining: Option<Duration>) -> Self {
        let holder = Self::from_value(&String::from_utf8_lossy(value), remaining);
        Self { id: HolderId::of(value), ..holder }
    }

    /// Since when it has the lock, in milliseconds as in its label; zero if the label has no time.
    pub(crate) fn since_millis(&self) -> u64 {
        let since = self.since.and_then(|since| since.duration_since(SystemTime::UNIX_EPOCH).ok());
        since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// When its lease ends, by the clock of this process: a report.
    pub(crate) fn until(&self) -> SystemTime {
        let until = since_1970().saturating_add(self.remaining.unwrap_or_default());
        SystemTime::UNIX_EPOCH + until.min(YEAR_10_000 - Duration::from_secs(1))
    }

    /// The same holder as if its key were not done, for a quorum that does not agree on that.
    pub(crate) fn not_done(self) -> Self {
        Self { id: self.id.not_done(), done: false, ..self }
    }

    /// Whether two stores name the same holder. The remaining lease time may differ from store to
    /// store. All marks are the same, from any claim: each means that the key is done.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let ended = |holder: &Self| Self { remaining: None, ..holder.clone() };
        (self.done && other.done) || ended(self) == ended(other)
    }
}

impl AsRef<HolderId> for Holder {
    fn as_ref(&self) -> &HolderId {
        &self.id
    }
}

/// One clause, as in a contention error: `orders on web-3 (process 17) in shop::deduct`.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The fields are public, so a store of the user's own may have set them to anything.
        f.write_str(&printable(self.service.as_deref().unwrap_or("another program")))?;
        if let Some(host) = &self.host {
            write!(f, " on {}", printable(host))?;
        }
        if let Some(process) = self.process {
            write!(f, " (process {process})")?;
        }
        if let Some(function) = &self.function {
            write!(f, " in {}", printable(function))?;
        }
        if self.done {
            f.write_str(", whose work counts as done")?;
            let until = self.remaining.and_then(|left| since_1970().checked_add(left));
            if let Some(until) = until.filter(|until| *until < YEAR_10_000) {
                let until = SystemTime::UNIX_EPOCH + until;
                write!(f, " until {}", humantime::format_rfc3339_seconds(until))?;
            }
            return Ok(());
        }
        if let Some(since) = self.since.and_then(|since| since.elapsed().ok()) {
            write!(f, ", for {}", rounded(since))?;
        }
        if let Some(remaining) = self.remaining {
            write!(f, ", its lease ends in {}", rounded(remaining))?;
        }
        Ok(())
    }
}

/// Beyond it there is no such text, and another program's key may have any end.
const YEAR_10_000: Duration = Duration::from_secs(253_402_300_800);

/// Rounds to whole milliseconds for display.
pub(crate) fn rounded(duration: Duration) -> humantime::FormattedDuration {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    humantime::format_duration(Duration::from_millis(millis))
}

/// The part of a label that is the same for every lock of a manager.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    words: String,
}

impl Identity {
    pub(crate) fn new(service: Option<&str>) -> Self {
        let service = service.map_or_else(program_name, str::to_owned);
        let host = gethostname::gethostname();
        let words = format!(
            "service={} host={} pid={}",
            encoded(&service),
            encoded(&host.to_string_lossy()),
            std::process::id()
        );
        Self { words }
    }

    /// The label of a call, for a lock's value.
    pub(crate) fn label(&self, function: Option<&str>) -> String {
        let mut label = String::with_capacity(self.label_len(function));
        self.write_label(&mut label, function);
        label
    }

    /// The length of the label, if no character of the function's name has to be encoded.
    pub(crate) fn label_len(&self, function: Option<&str>) -> usize {
        self.words.len() + function.map_or(0, str::len) + 40
    }

    /// Appends the label of a call. The part that is the same for all locks was rendered once, so
    /// this only copies.
    pub(crate) fn write_label(&self, label: &mut String, function: Option<&str>) {
        let since = u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX);
        for part in ["since=", decimal(since).as_str(), " ", &self.words] {
            label.push_str(part);
        }
        if let Some(function) = function {
            label.push_str(" function=");
            match is_plain(function) {
                true => label.push_str(function),
                false => label.push_str(&encoded(function)),
            }
        }
    }
}

/// Returns whether [`encoded`] changes nothing, as for every Rust path.
///
/// It checks all bytes, without an early end, because the compiler then checks many at once.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() & (byte != b'%') & (byte != b'=');
    text.bytes().fold(true, |all, byte| all & plain(byte))
}

pub(crate) fn encoded(value: &str) -> Cow<'_, str> {
    utf8_percent_encode(value, RESERVED).into()
}

fn program_name() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_stem());
    name.map_or_else(|| "unknown".into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: any of the bytes in `is_plain`.
    #[test]
    fn what_is_not_encoded_is_read_as_it_was() {
        let identity = Identity::new(Some("orders"));
        for byte in 0..=127_u8 {
            let function = format!("shop::{}", char::from(byte));
            let encoded = encoded(&function);
            assert_eq!(is_plain(&function), encoded == function, "{function:?}");
            let label = identity.label(Some(&function));
            assert!(label.ends_with(&format!(" function={encoded}")), "{label}");
        }
    }

    /// Red without: `printable` in `from_value`.
    #[test]
    fn a_label_is_no_line_of_its_own_in_a_log_and_changes_no_direction() {
        let holder = Holder::from_value("0 service=a%0Aroot%1B[2J host=b%E2%80%AE%0D", None);
        assert_eq!(holder.service.as_deref(), Some("a\u{fffd}root\u{fffd}[2J"));
        assert_eq!(holder.host.as_deref(), Some("b\u{fffd}\u{fffd}"));
        assert_eq!(holder.to_string(), "a\u{fffd}root\u{fffd}[2J on b\u{fffd}\u{fffd}");
    }

    /// Red without: `printable` in `fmt`.
    #[test]
    fn the_fields_of_a_store_of_the_users_own_are_printed_by_the_same_rule() {
        let text = Some("a\u{2067}\nb".to_owned());
        let (service, host, function) = (text.clone(), text.clone(), text);
        let holder = Holder { service, host, function, ..Holder::default() };
        assert_eq!(
            holder.to_string(),
            "a\u{fffd}\u{fffd}b on a\u{fffd}\u{fffd}b in a\u{fffd}\u{fffd}b"
        );
    }

    /// Red without: the word `done` in `from_value`, or the arm in `fmt`.
    #[test]
    fn a_done_key_says_so_and_until_when() {
        let (label, day) = ("0 since=0 service=x host=h done=1", Duration::from_secs(86_400));
        let holder = Holder::from_value(label, Some(day));
        assert!(holder.done && !holder.clone().not_done().done);
        let (tomorrow, shown) = (since_1970() + day, holder.to_string());
        let until = shown.strip_prefix("x on h, whose work counts as done until ").unwrap();
        let until = humantime::parse_rfc3339(until).unwrap();
        let until = until.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert!(until <= tomorrow + day && until + day >= tomorrow, "{until:?}");
        // Neither a time that has no text, nor another value of the word.
        let forever = Holder::from_value(label, Some(Duration::MAX)).to_string();
        assert_eq!(forever, "x on h, whose work counts as done");
        for other in ["0 service=x", "0 service=x done=0", "0 service=x done=", "0 done%3D1"] {
            assert!(!Holder::from_value(other, None).done, "{other}");
        }
    }

    /// A label may contain any number, and the holder's clock may be wrong.
    ///
    /// Red without: `checked_add` in `from_value`, or `ok` in `fmt`.
    #[test]
    fn a_time_that_cannot_be_is_left_out() {
        let year_300_000_000 = "9467280000000000000";
        for since in [year_300_000_000, &u64::MAX.to_string(), "99999999999999", "-5", "1e3", ""] {
            let holder = Holder::from_value(&format!("since={since} service=x"), None);
            assert_eq!(holder.to_string(), "x", "{since}");
        }
    }
}
