//! The crate `rslock`, the most popular one.

use std::time::Duration;

use rslock::LockManager;

use super::TTL;
use crate::load::Task;

/// Its default number of attempts of one `lock`; `acquire` repeats that without end.
const TRIES: u32 = 3;

/// Its manager, with its default pause (up to 200 ms) or another.
///
/// It draws whole milliseconds, from zero to less than the pause: with 1 ms it does not pause at
/// all, and is as fast as it can be.
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
