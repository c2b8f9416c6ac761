//! Whether a process is alive: a killed one sends nothing more, although its memory is still to be
//! dropped.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// One life of a process; clones are the same life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    over: AtomicBool,
    ended: Notify,
}

impl Life {
    /// Kills the process.
    pub(crate) fn end(&self) {
        self.0.over.store(true, Ordering::Relaxed);
        self.0.ended.notify_waiters();
    }

    /// Returns whether it was killed.
    pub(crate) fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Relaxed)
    }

    /// Completes when it is killed.
    pub(crate) async fn is_ended(&self) {
        let mut ended = pin!(self.0.ended.notified());
        ended.as_mut().enable();
        if !self.is_over() {
            ended.await;
        }
    }
}
