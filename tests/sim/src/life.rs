//! Whether a process still lives: one that was killed says nothing more and asks nothing more,
//! though its memory is still to be cleared away.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// One life of a process; its clones are the same life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    over: AtomicBool,
    ended: Notify,
}

impl Life {
    /// It is killed.
    pub(crate) fn end(&self) {
        self.0.over.store(true, Ordering::Relaxed);
        self.0.ended.notify_waiters();
    }

    /// Whether it was killed.
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
