//! A runtime that belongs to a store: its session must not end with the runtime of a caller.

use std::convert::Infallible;
use std::fmt;

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;

use crate::platform::sync::Mutex;
use crate::store::StoreError;

/// A thread with a runtime, started when first needed. It ends when this and all its
/// [guards](Self::guard) are dropped.
pub(crate) struct StoreThread {
    name: &'static str,
    running: Mutex<Option<(Handle, ThreadGuard)>>,
}

/// Keeps the thread running.
pub(crate) type ThreadGuard = mpsc::Sender<Infallible>;

impl StoreThread {
    /// Names a thread that starts when it is first needed.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, running: Mutex::default() }
    }

    /// Uses this runtime in place of a thread, for a test that controls its clock.
    #[cfg(test)]
    pub(crate) fn of(runtime: Handle) -> Self {
        let (guard, _all_dropped) = mpsc::channel(1);
        Self { name: "test", running: Mutex::new(Some((runtime, guard))) }
    }

    /// The handle of its runtime.
    pub(crate) fn handle(&self) -> Result<Handle, StoreError> {
        Ok(self.get()?.0)
    }

    /// A guard that keeps it running, for a task that must see the end of something.
    pub(crate) fn guard(&self) -> Result<ThreadGuard, StoreError> {
        Ok(self.get()?.1)
    }

    fn get(&self) -> Result<(Handle, ThreadGuard), StoreError> {
        // No panic can leave this half-changed, so a poisoned mutex is safe to use.
        let mut running = self.running.lock();
        if let Some(running) = &*running {
            return Ok(running.clone());
        }
        let no_thread = |error: std::io::Error| {
            let sentence = "the thread for the store's session could not be started";
            StoreError::new(sentence).with_source(error).not_sent()
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let handle = runtime.handle().clone();
        let (guard, mut all_dropped) = mpsc::channel::<Infallible>(1);
        std::thread::Builder::new()
            .name(self.name.into())
            .spawn(move || {
                // Ends when all senders are dropped.
                runtime.block_on(all_dropped.recv());
            })
            .map_err(no_thread)?;
        Ok(running.insert((handle, guard)).clone())
    }
}

impl fmt::Debug for StoreThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreThread").field("name", &self.name).finish_non_exhaustive()
    }
}
