//! A process that only waits: `soak crowd url=… keys=…,… sharing=… tasks=… wait=…`.
//!
//! Prints `ready`. After one line of input its tasks ask for the locks, and all their waits end at
//! the same moment. Prints `waiting` when all of them have asked, and finally how they were
//! answered.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use lockattr::{Error, LockManager, LockOptions, Mode};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::time::{Instant, sleep};

use crate::worker::{say, value};

/// The lock that the process uses after its crowd has been answered.
pub(crate) const ALIVE: &str = "plot:alive";

/// How a lock is shared, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Alone,
    Shared,
    Permits(u32),
}

impl Sharing {
    pub(crate) fn options(self) -> LockOptions {
        match self {
            Self::Alone => LockOptions::new(),
            Self::Shared => LockOptions::new().mode(Mode::Shared),
            Self::Permits(permits) => LockOptions::new().permits(permits),
        }
    }

    /// As a word: 0, or how many share it, or `u32::MAX` for any number.
    pub(crate) fn word(self) -> u32 {
        match self {
            Self::Alone => 0,
            Self::Shared => u32::MAX,
            Self::Permits(permits) => permits,
        }
    }

    fn of(word: u32) -> Self {
        match word {
            0 => Self::Alone,
            u32::MAX => Self::Shared,
            permits => Self::Permits(permits),
        }
    }
}

/// The answers that a crowd got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrowdOutcome {
    pub(crate) granted: usize,
    pub(crate) contended: usize,
    pub(crate) failed: usize,
    /// The first error.
    pub(crate) error: String,
}

/// Runs the process.
///
/// # Errors
///
/// Arguments that make no sense.
pub(crate) async fn run(words: &[String]) -> Result<(), String> {
    let arguments: BTreeMap<&str, &str> =
        words.iter().filter_map(|word| word.split_once('=')).collect();
    let (url, keys): (String, String) = (value(&arguments, "url")?, value(&arguments, "keys")?);
    let sharing = Sharing::of(value(&arguments, "sharing")?);
    let (tasks, wait): (usize, u64) = (value(&arguments, "tasks")?, value(&arguments, "wait")?);
    let manager = LockManager::builder().url(url).build().map_err(|error| error.to_string())?;
    let mut orders = BufReader::new(stdin()).lines();
    say("ready");
    orders.next_line().await.map_err(|error| error.to_string())?;
    let ends = Instant::now() + Duration::from_millis(wait);
    let acquire = async || {
        let options = sharing.options().wait(ends.saturating_duration_since(Instant::now()));
        // Released at once by the drop.
        manager.acquire_all(keys.split(','), options).await.map(drop)
    };
    let outcomes = join_all((0..tasks).map(|_| acquire()));
    let announce = async {
        tokio::task::yield_now().await;
        say("waiting");
    };
    let (outcomes, ()) = tokio::join!(outcomes, announce);
    let mut sum = CrowdOutcome::default();
    for outcome in outcomes {
        match outcome {
            Ok(()) => sum.granted += 1,
            Err(Error::Contended { .. }) => sum.contended += 1,
            Err(error) => {
                sum.failed += 1;
                sum.error = error.to_string();
            }
        }
    }
    say(&sum.line());
    tokio::select! {
        over = orders.next_line() => drop(over.map_err(|error| error.to_string())?),
        () = stay_alive(&manager) => {}
    }
    manager.shutdown().await;
    Ok(())
}

/// Keeps using its connection, so that notifications for callers that gave up still arrive.
async fn stay_alive(manager: &LockManager) {
    loop {
        // An outage ends after some time.
        drop(manager.try_acquire(ALIVE, LockOptions::new()).await);
        sleep(Duration::from_millis(200)).await;
    }
}

impl CrowdOutcome {
    fn line(&self) -> String {
        let Self { granted, contended, failed, error } = self;
        format!("{granted} {contended} {failed} {error}")
    }

    /// Reads the line that a crowd prints.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let mut number = || words.next()?.parse().ok();
        let (granted, contended, failed) = (number()?, number()?, number()?);
        Some(Self { granted, contended, failed, error: words.next()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed_as_they_were_printed() {
        let said = CrowdOutcome { granted: 1, contended: 2, failed: 3, error: "it is off".into() };
        assert_eq!(CrowdOutcome::read(&said.line()), Some(said));
        assert_eq!(CrowdOutcome::read("ready"), None);
    }

    #[test]
    fn a_sharing_is_parsed_from_its_word() {
        for sharing in [Sharing::Alone, Sharing::Shared, Sharing::Permits(2)] {
            assert_eq!(Sharing::of(sharing.word()), sharing);
        }
    }
}
