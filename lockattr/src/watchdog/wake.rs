//! Wakes the watchdog's task on one runtime, and has it watched until it is polled.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Watchdog;
use super::unparker::Unparker;

pub(super) struct Wake {
    notify: Notify,
    /// `None` if no thread could take over.
    unparker: Option<Unparker>,
}

impl Wake {
    /// For the task on this runtime.
    pub(super) fn new(runtime: &Handle, watchdog: &Arc<Watchdog>) -> Arc<Self> {
        let unparker = Unparker::new(runtime, watchdog);
        Arc::new(Self { notify: Notify::new(), unparker })
    }

    #[cfg(test)]
    pub(super) fn unwatched() -> Arc<Self> {
        Arc::new(Self { notify: Notify::new(), unparker: None })
    }

    pub(super) fn wake(&self) {
        self.notify.notify_one();
        if let Some(unparker) = &self.unparker {
            unparker.expect_poll_by(Instant::now());
        }
    }

    /// Waits until the task is woken.
    pub(super) async fn woken(&self) {
        self.notify.notified().await;
    }

    /// The task, or another in its place, begins to do what is due: what comes from here on wakes it again.
    pub(super) fn polled(&self) {
        self.unparker.iter().for_each(Unparker::polled);
    }

    /// The task sleeps until `next`.
    pub(super) fn expect_poll_by(&self, next: Instant) {
        let Some(unparker) = &self.unparker else { return };
        unparker.expect_poll_by(next);
        // Not in `wake`: a subscriber of the event may take a lock, and the queue's mutex is locked there.
        if let Some(error) = unparker.start_error() {
            tracing::warn!(
                error.message = %error,
                "no thread could be started to unpark workers: a body that blocks its thread may lose its lock"
            );
        }
    }

    /// The task has ended.
    pub(super) fn end(&self) {
        self.unparker.iter().for_each(Unparker::end);
    }
}
