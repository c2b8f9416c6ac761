//! The crate `rlock`.

use std::time::Duration;

use rlock::AcquireOptions;
use rlock::async_lock::RLock;

use super::TTL;
use crate::load::Task;

/// Its manager, which retries after its default of 100 ms or after another pause.
pub(crate) struct Rlock {
    manager: RLock,
    options: AcquireOptions,
}

impl Rlock {
    pub(super) async fn connect(url: &str, pause: Option<Duration>) -> Result<Self, String> {
        let manager = RLock::new(url).await.map_err(|error| error.to_string())?;
        let mut options = AcquireOptions::builder().ttl(TTL);
        if let Some(pause) = pause {
            options = options.retry_interval(pause);
        }
        let options = options.build().map_err(|error| error.to_string())?;
        Ok(Self { manager, options })
    }

    pub(super) async fn hold(&self, key: &str, task: &mut Task) -> Result<(), String> {
        let acquired = self.manager.acquire_mutex_with_options(key, self.options.clone()).await;
        let mut guard = acquired.map_err(|error| error.to_string())?;
        task.inside(None).await;
        guard.release().await.map_err(|error| error.to_string())
    }
}
