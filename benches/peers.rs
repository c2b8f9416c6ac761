//! All compared ways to acquire a lock: lockattr, bare commands, other crates, other languages.

mod bare;
mod ours;
mod rlock;
mod rslock;
mod scripts;

use std::time::Duration;

use tokio::process::Command;

use crate::load::Task;
pub(crate) use bare::Bare;
use ours::{Kind, Ours};
use rlock::Rlock;
use rslock::Rslock;
use scripts::Script;

/// The lease of all peers: lockattr's default, and long enough that none is renewed in a round.
const TTL: Duration = Duration::from_secs(10);

/// A second pause between two attempts for polling crates, beside their own default.
const QUICK: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Ours,
    /// lockattr without waiting for the answer to a release.
    Background,
    /// lockattr with a lease cached for a moment after the last release.
    Linger,
    /// lockattr with four holders at once.
    Permits,
    /// lockattr with three readers to one writer.
    Mixed,
    /// `SET NX PX` and a script that compares and deletes, over one connection; retries every
    /// millisecond.
    Bare,
    Rslock,
    RslockQuick,
    Rlock,
    RlockQuick,
    /// redis-py's `Lock`, in Python.
    RedisPy,
    /// redis-semaphore's `Mutex`, on Node.
    RedisSemaphore,
}

/// The Rust crates with the same purpose, with their own pauses and with short ones.
pub(crate) const CRATES: [Peer; 4] =
    [Peer::Rslock, Peer::RslockQuick, Peer::Rlock, Peer::RlockQuick];

/// The fastest of them with one contended key: by acquisitions, and by hand-offs.
pub(crate) const BEST_CRATES: [Peer; 2] = [Peer::Rslock, Peer::RslockQuick];

/// Clients of other languages, if they are installed.
pub(crate) const LANGUAGES: [Peer; 2] = [Peer::RedisPy, Peer::RedisSemaphore];

impl Peer {
    const ALL: [Self; 12] = [
        Self::Ours,
        Self::Background,
        Self::Linger,
        Self::Permits,
        Self::Mixed,
        Self::Bare,
        Self::Rslock,
        Self::RslockQuick,
        Self::Rlock,
        Self::RlockQuick,
        Self::RedisPy,
        Self::RedisSemaphore,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "lockattr",
            Self::Background => "lockattr background",
            Self::Linger => "lockattr linger",
            Self::Permits => "lockattr 4 permits",
            Self::Mixed => "lockattr read/write",
            Self::Bare => "bare commands",
            Self::Rslock => "rslock",
            Self::RslockQuick => "rslock 1 ms",
            Self::Rlock => "rlock",
            Self::RlockQuick => "rlock 1 ms",
            Self::RedisPy => "redis-py",
            Self::RedisSemaphore => "redis-semaphore",
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|peer| peer.name() == name);
        known.ok_or_else(|| format!("no peer is called `{name}`"))
    }

    pub(crate) fn is_crate(self) -> bool {
        CRATES.contains(&self)
    }

    pub(crate) fn is_exclusive(self) -> bool {
        !matches!(self, Self::Permits | Self::Mixed)
    }

    /// The program of its processes: this one again, or an interpreter with a script.
    pub(crate) fn program(self) -> Result<Command, String> {
        match self {
            Self::RedisPy => Ok(Script::PYTHON.command()),
            Self::RedisSemaphore => Ok(Script::NODE.command()),
            _ => {
                let program = std::env::current_exe().map_err(|error| error.to_string())?;
                let mut command = Command::new(program);
                command.args(["worker", self.name()]);
                Ok(command)
            }
        }
    }
}

pub(crate) enum Client {
    Ours(Box<Ours>),
    Bare(Bare),
    Rslock(Rslock),
    Rlock(Rlock),
}

impl Client {
    pub(crate) async fn connect(peer: Peer, url: &str) -> Result<Self, String> {
        Ok(match peer {
            Peer::Ours => Self::Ours(Box::new(Ours::connect(url, Kind::Plain).await?)),
            Peer::Background => Self::Ours(Box::new(Ours::connect(url, Kind::Background).await?)),
            Peer::Linger => Self::Ours(Box::new(Ours::connect(url, Kind::Linger).await?)),
            Peer::Permits => Self::Ours(Box::new(Ours::connect(url, Kind::Permits).await?)),
            Peer::Mixed => Self::Ours(Box::new(Ours::connect(url, Kind::Mixed).await?)),
            Peer::Bare => Self::Bare(Bare::connect(url).await?),
            Peer::Rslock => Self::Rslock(Rslock::new(url, None)),
            Peer::RslockQuick => Self::Rslock(Rslock::new(url, Some(QUICK))),
            Peer::Rlock => Self::Rlock(Rlock::connect(url, None).await?),
            Peer::RlockQuick => Self::Rlock(Rlock::connect(url, Some(QUICK)).await?),
            Peer::RedisPy | Peer::RedisSemaphore => {
                return Err(format!("{} is a program of its own", peer.name()));
            }
        })
    }

    pub(crate) async fn hold(&self, key: &str, task: &mut Task) -> Result<(), String> {
        match self {
            Self::Ours(ours) => ours.hold(key, task).await,
            Self::Bare(bare) => bare.hold(key, task).await,
            Self::Rslock(rslock) => rslock.hold(key, task).await,
            Self::Rlock(rlock) => rlock.hold(key, task).await,
        }
    }
}
