//! What the expansion of a plain function calls.

use tokio::time::Instant;

use super::once::once;
use super::{Call, Finished, entered, printed, several};
use crate::Error;
use crate::manager::body;
use crate::manager::body::{Granted, Start};

/// The right to run a body on this thread, or why it does not run.
#[derive(Debug)]
pub struct BlockingEntry(Result<Start, Error>);

impl Call {
    /// Acquires the lock, and waits for it on this thread.
    pub fn begin_blocking(self) -> BlockingEntry {
        BlockingEntry(self.start_blocking())
    }

    /// The same; a refusal is the error.
    pub fn enter_blocking(self) -> Result<BlockingEntry, Error> {
        self.start_blocking().map(|start| BlockingEntry(Ok(start)))
    }

    fn start_blocking(self) -> Result<Start, Error> {
        if !self.locks {
            return Ok(Start::Unlocked);
        }
        let began = Instant::now();
        let manager = self.manager.chosen()?;
        let options = self.options.resolve_blocking(manager.settings())?;
        let key = printed(self.key)?;
        let options = once(options, self.once_per, &manager, &key)?;
        let outcome = match several(&manager, &key, self.others)? {
            None => match manager.enter_at_once_blocking(&options, &key)? {
                Some(guard) => return Ok(Start::Nested(guard, options.on_lost)),
                None => manager.acquire_on_blocking(&options, &key),
            },
            Some(keys) => manager.acquire_all_on_blocking(&options, keys),
        };
        let start =
            outcome.map(|guard| Granted::new(guard, options, manager.clone(), began).into());
        entered(start, &key, self.run_unlocked)
    }
}

/// Runs the body on this thread and releases the lock.
pub fn run_blocking<T>(
    entry: BlockingEntry,
    body: impl FnOnce() -> T,
    refuse: fn(Error) -> T,
) -> T {
    entry.0.and_then(|start| body::run_blocking(start, body, |_| false)).unwrap_or_else(refuse)
}

/// The same; after a body that ended `Ok`, the key is done.
pub fn run_once_blocking<T: Finished>(
    entry: BlockingEntry,
    body: impl FnOnce() -> T,
    refuse: fn(Error) -> T,
) -> T {
    entry.0.and_then(|start| body::run_blocking(start, body, T::is_ok)).unwrap_or_else(refuse)
}
