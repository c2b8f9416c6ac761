//! A runtime of a store's own: its session must not end with the runtime of a caller.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;

use crate::store::StoreError;

/// A thread with a runtime, started when first needed. It ends when this and all that
/// [stay](Self::guard) are dropped.
pub(crate) struct StoreThread {
    name: &'static str,
    running: Mutex<Option<(Handle, ThreadGuard)>>,
}

/// While it lives, so does the thread.
pub(crate) type ThreadGuard = mpsc::Sender<Infallible>;

impl StoreThread {
    /// None yet, but of this name when it is needed.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, running: Mutex::default() }
    }

    /// Not a thread of its own, but this runtime: for a test that has its clock.
    #[cfg(test)]
    pub(crate) fn of(runtime: Handle) -> Self {
        let (stay, _all_gone) = mpsc::channel(1);
        Self { name: "of a test", running: Mutex::new(Some((runtime, stay))) }
    }

    /// What runs there.
    pub(crate) fn handle(&self) -> Result<Handle, StoreError> {
        Ok(self.get()?.0)
    }

    /// What keeps it running: for a task that has to see the end of something.
    pub(crate) fn guard(&self) -> Result<ThreadGuard, StoreError> {
        Ok(self.get()?.1)
    }

    fn get(&self) -> Result<(Handle, ThreadGuard), StoreError> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            return Ok(running.clone());
        }
        let no_thread = |error: std::io::Error| {
            let sentence = "no thread could be started for its session";
            StoreError::new(sentence).with_source(error).not_sent()
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let handle = runtime.handle().clone();
        let (stay, mut all_gone) = mpsc::channel::<Infallible>(1);
        std::thread::Builder::new()
            .name(self.name.into())
            .spawn(move || {
                // Ends when no process is left who could say anything.
                runtime.block_on(all_gone.recv());
            })
            .map_err(no_thread)?;
        Ok(running.insert((handle, stay)).clone())
    }
}

impl fmt::Debug for StoreThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("name", &self.name).finish_non_exhaustive()
    }
}
