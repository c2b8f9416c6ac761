//! The task that stays with a connection: makes it, and then asks it now and then whether it is
//! still there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::connection_slot::{ConnectionSlot, Outcome, Role};

/// Signs of life.
#[derive(Default)]
pub(super) struct Heartbeat(AtomicBool);

impl Heartbeat {
    /// The server has answered, or said something.
    pub(super) fn replied(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_replied(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Connects, tells how that went, and stays with the connection for as long as it answers.
pub(super) async fn run_connection<R: Role>(
    link: Arc<ConnectionSlot<R>>,
    runtime: runtime::Id,
    id: u64,
    told: oneshot::Sender<Outcome<R>>,
) {
    let watch = HeartbeatTask { link: Arc::downgrade(&link), id };
    let interval = link.config.timing.heartbeat;
    let outcome = link.connect(runtime, id).await;
    let heartbeat = outcome.as_ref().ok().map(|live| live.heartbeat.clone());
    // Nobody listens any more if all who asked have given up: then the connection that comes back
    // must not be kept here.
    drop(told.send(outcome));
    drop(link);
    if let Some(heartbeat) = heartbeat {
        watch.until_silent(&heartbeat, interval).await;
    }
}

/// Holds neither the link nor the connection while it sleeps: both close with their store.
struct HeartbeatTask<R: Role> {
    link: Weak<ConnectionSlot<R>>,
    id: u64,
}

impl<R: Role> HeartbeatTask<R> {
    async fn until_silent(&self, heartbeat: &Heartbeat, interval: Duration) {
        loop {
            sleep(interval).await;
            if !heartbeat.has_replied() && !self.answers().await {
                return;
            }
        }
    }

    /// Whether the connection is still in use and answers; any answer will do, an error too.
    async fn answers(&self) -> bool {
        let Some(link) = self.link.upgrade() else { return false };
        let Some(live) = link.live_with(self.id) else { return false };
        let limit = link.config.timing.response_timeout;
        drop(link);
        match timeout(limit, live.client.check_connection()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => error.as_db_error().is_some() && !live.client.is_closed(),
            Err(_) => false,
        }
    }
}

impl<R: Role> Drop for HeartbeatTask<R> {
    /// No watch, no connection: also when a runtime ends and takes both along.
    fn drop(&mut self) {
        if let Some(link) = self.link.upgrade() {
            link.forget(self.id);
        }
    }
}
