//! What the expansion of a plain function calls.

use tokio::time::Instant;

use super::{Call, Entry, entered, printed, several};
use crate::body::Granted;
use crate::default_manager::default_manager;
use crate::{Error, body};

/// Takes the lock that `call` asks for, and waits for it on this thread.
pub fn enter_blocking(call: Call) -> Result<Entry, Error> {
    if !call.locks {
        return Ok(Entry { held: None });
    }
    let began = Instant::now();
    let manager = call.manager.unwrap_or_else(default_manager)?;
    let terms = call.options.resolve_blocking(manager.settings())?;
    let key = printed(call.key)?;
    let outcome = match several(&manager, &key, call.others)? {
        None => manager.acquire_on_blocking(&terms, &key),
        Some(keys) => manager.acquire_all_on_blocking(&terms, keys),
    };
    let granted = outcome.map(|guard| Granted::new(guard, terms, manager, began));
    entered(granted, &key, call.run_unlocked)
}

impl Entry {
    /// Runs the body on this thread and gives the lock back.
    pub fn run_blocking<T>(self, body: impl FnOnce() -> T) -> Result<T, Error> {
        match self.held {
            Some(granted) => body::run_blocking(granted, body),
            None => body::run_unlocked_blocking(body),
        }
    }
}
