//! An acquire and a release of a lock that nobody else wants, on a Redis: by us, and by bare commands.

use std::hint::black_box;

use lockattr::{LockManager, LockOptions};

use crate::peers::Bare;

/// So many keys in turn: neither always the same nor ever a new one.
const KEYS: u64 = 64;

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Ours,
    Bare,
}

impl Pair {
    const ALL: [Self; 2] = [Self::Ours, Self::Bare];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "pair",
            Self::Bare => "bare-pair",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pair| pair.name() == name)
    }

    /// Does it so many times, one after another.
    pub(crate) async fn repeat(self, url: &str, count: u64) -> Result<(), String> {
        let keys = (0..count).map(|n| black_box(format!("pair:{}", n % KEYS)));
        match self {
            Self::Ours => {
                let connected = LockManager::connect(url).await;
                let manager = connected.map_err(|error| error.to_string())?;
                for key in keys {
                    let held = manager.with_lock(key, LockOptions::new(), async |_| {}).await;
                    held.map_err(|error| error.to_string())?;
                }
            }
            Self::Bare => {
                let bare = Bare::connect(url).await?;
                for key in keys {
                    bare.pair(&key).await?;
                }
            }
        }
        Ok(())
    }
}
