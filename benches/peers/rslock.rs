//! The crate `rslock`, the one that is used most.

use std::time::Duration;

use rslock::LockManager;

use super::TTL;
use crate::load::Task;

/// Its own default, how often one `lock` tries; `acquire` calls that again forever.
const TRIES: u32 = 3;

/// Its manager, with the pause of its own (up to 200 ms) or another.
///
/// It draws whole milliseconds, from zero to less than the pause: with 1 ms it does not pause at
/// all, and is as quick as it can be.
pub(crate) struct Rslock(LockManager);

impl Rslock {
    pub(super) fn new(url: &str, pause: Option<Duration>) -> Self {
        let mut manager = LockManager::new(vec![url]);
        if let Some(pause) = pause {
            manager.set_retry(TRIES, pause);
        }
        Self(manager)
    }

    pub(super) async fn hold(&self, key: &str, task: &mut Task) -> Result<(), String> {
        let guard = self.0.acquire(key, TTL).await.map_err(|error| error.to_string())?;
        task.inside(None).await;
        guard.release().await;
        Ok(())
    }
}
