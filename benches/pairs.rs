//! An acquire and a release of an uncontended lock on Redis, with lockattr and with bare commands.

use std::hint::black_box;

use lockattr::{LockManager, LockOptions, Release};

use crate::peers::Bare;

/// How many keys are used in turn: neither always the same one nor always a new one.
const KEYS: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Ours,
    /// The same with `release = background`.
    Background,
    Bare,
}

impl Pair {
    const ALL: [Self; 3] = [Self::Ours, Self::Background, Self::Bare];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "pair",
            Self::Background => "background-pair",
            Self::Bare => "bare-pair",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pair| pair.name() == name)
    }

    pub(crate) async fn repeat(self, url: &str, count: u64) -> Result<(), String> {
        let keys = (0..count).map(|n| black_box(format!("pair:{}", n % KEYS)));
        match self {
            Self::Ours | Self::Background => {
                let options = match self {
                    Self::Background => LockOptions::new().release(Release::Background),
                    _ => LockOptions::new(),
                };
                let connected = LockManager::connect(url).await;
                let manager = connected.map_err(|error| error.to_string())?;
                for key in keys {
                    let held = manager.with_lock(key, options.clone(), async |_| {}).await;
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
