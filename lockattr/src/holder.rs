//! Who holds a lock: the label that travels in the lock's value, and its reading.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What would break the `name=value` words of a label apart.
const RESERVED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'=');

/// Who has a lock, since when, and for how long still.
///
/// Everything is what the holder wrote about itself; a lock taken by a program that is not
/// lockattr shows only `remaining`.
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The service's name, as set on its manager; the program's name by default.
    pub service: Option<String>,
    /// The host it runs on.
    pub host: Option<String>,
    /// Its process id.
    pub process: Option<u32>,
    /// The function that asked: the annotated one, or what [`LockOptions::function`] said.
    ///
    /// [`LockOptions::function`]: crate::LockOptions::function
    pub function: Option<String>,
    /// When it asked, by its own clock.
    pub since: Option<SystemTime>,
    /// How long the lease still runs if nobody renews it; `None` if it never ends.
    pub remaining: Option<Duration>,
}

impl Holder {
    /// Reads the label out of a lock's value; words it does not know are passed over.
    pub fn from_value(value: &str, remaining: Option<Duration>) -> Self {
        let mut holder = Self { remaining, ..Self::default() };
        for word in value.split(' ') {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            let value = percent_decode_str(value).decode_utf8_lossy();
            match name {
                "service" => holder.service = Some(value.into_owned()),
                "host" => holder.host = Some(value.into_owned()),
                "pid" => holder.process = value.parse().ok(),
                "function" => holder.function = Some(value.into_owned()),
                "since" => {
                    let since = value.parse().ok().map(Duration::from_millis);
                    holder.since = since.and_then(|ms| SystemTime::UNIX_EPOCH.checked_add(ms));
                }
                _ => {}
            }
        }
        holder
    }

    /// Whether two stores name the same holder: how long its lease runs differs from one to the
    /// other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Self { remaining: None, ..self.clone() } == Self { remaining: None, ..other.clone() }
    }
}

/// One clause, as it stands in a contention error: `orders on web-3 (process 17) in shop::deduct`.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.service.as_deref().unwrap_or("another program"))?;
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        if let Some(process) = self.process {
            write!(f, " (process {process})")?;
        }
        if let Some(function) = &self.function {
            write!(f, " in {function}")?;
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

/// Whole milliseconds: more digits say nothing to a reader.
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

    /// Who asks now, for a lock's value.
    pub(crate) fn label(&self, function: Option<&str>) -> String {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
        // Divided as 64 bits; good for half a billion years.
        let since = u64::try_from(since).unwrap_or(u64::MAX).to_string();
        let mut label = ["since=", &since, " ", &self.words].concat();
        if let Some(function) = function {
            label.push_str(" function=");
            label.push_str(&encoded(function));
        }
        label
    }
}

fn encoded(value: &str) -> Cow<'_, str> {
    utf8_percent_encode(value, RESERVED).into()
}

fn program_name() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_stem());
    name.map_or_else(|| "unknown".into(), |name| name.to_string_lossy().into_owned())
}
