//! A claim that waits: how its task is cancelled, and when it is over.

use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, watch};

use super::session::Session;

pub(super) struct Waiter {
    pub(super) cancelled: Notify,
    over: watch::Sender<bool>,
    /// The session that waits in the server's queue for the claim, once there is one.
    pub(super) session: OnceLock<Arc<Session>>,
}

impl Waiter {
    pub(super) fn new() -> Arc<Self> {
        let over = watch::Sender::new(false);
        Arc::new(Self { cancelled: Notify::new(), over, session: OnceLock::new() })
    }

    pub(super) fn cancel(&self) {
        self.cancelled.notify_one();
    }

    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Returns once the claim is no longer queued.
    pub(super) async fn over(&self) {
        // The sender lives as long as `self`.
        let mut over = self.over.subscribe();
        let _never = over.wait_for(|over| *over).await;
    }

    /// The server process that waits for the claim, or 0 while it waits for a place.
    pub(super) fn pid(&self) -> i32 {
        self.session.get().map_or(0, |session| session.pid)
    }
}

/// Marks the waiter as over, however the task ends.
pub(super) struct FinishOnDrop<'a>(pub(super) &'a Waiter);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.over.send_replace(true);
    }
}
