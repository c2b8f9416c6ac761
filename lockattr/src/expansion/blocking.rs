//! What the expansion of a plain function calls.

use tokio::time::Instant;

use super::once::once;
use super::{Call, Entry, entered, printed, several};
use crate::Error;
use crate::manager::body;
use crate::manager::body::{Granted, Start};

/// Acquires the lock that `call` requests, and waits for it on this thread.
pub fn enter_blocking(call: Call) -> Result<Entry, Error> {
    if !call.locks {
        return Ok(Entry { start: Start::Unlocked });
    }
    let began = Instant::now();
    let manager = call.manager.chosen()?;
    let options = call.options.resolve_blocking(manager.settings())?;
    let key = printed(call.key)?;
    let options = once(options, call.once_per, &manager, &key)?;
    let outcome = match several(&manager, &key, call.others)? {
        None => match manager.enter_at_once_blocking(&options, &key)? {
            Some(guard) => return Ok(Entry { start: Start::Nested(guard, options.on_lost) }),
            None => manager.acquire_on_blocking(&options, &key),
        },
        Some(keys) => manager.acquire_all_on_blocking(&options, keys),
    };
    let start = outcome.map(|guard| Granted::new(guard, options, manager.clone(), began).into());
    entered(start, &key, call.run_unlocked)
}

impl Entry {
    /// Runs the body on this thread and releases the lock.
    pub fn run_blocking<T>(self, body: impl FnOnce() -> T) -> Result<T, Error> {
        body::run_blocking(self.start, body)
    }
}
