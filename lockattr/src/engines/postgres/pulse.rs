//! The task that stays with a connection: makes it, and then asks it now and then whether it is
//! still there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::link::{Link, Outcome, Role};

/// Signs of life.
#[derive(Default)]
pub(super) struct Pulse(AtomicBool);

impl Pulse {
    /// The server has answered, or said something.
    pub(super) fn replied(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_replied(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Connects, tells how that went, and stays with the connection for as long as it answers.
pub(super) async fn keep_line<R: Role>(
    link: Arc<Link<R>>,
    runtime: runtime::Id,
    id: u64,
    told: oneshot::Sender<Outcome<R>>,
) {
    let watch = Watch { link: Arc::downgrade(&link), id };
    let interval = link.config.timing.heartbeat;
    let outcome = link.connect(runtime, id).await;
    let pulse = outcome.as_ref().ok().map(|live| live.pulse.clone());
    // Nobody listens any more if all who asked have given up: then the connection that comes back
    // must not be kept here.
    drop(told.send(outcome));
    drop(link);
    if let Some(pulse) = pulse {
        watch.until_silent(&pulse, interval).await;
    }
}

/// Holds neither the link nor the connection while it sleeps: both close with their store.
struct Watch<R: Role> {
    link: Weak<Link<R>>,
    id: u64,
}

impl<R: Role> Watch<R> {
    async fn until_silent(&self, pulse: &Pulse, interval: Duration) {
        loop {
            sleep(interval).await;
            if !pulse.has_replied() && !self.answers().await {
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

impl<R: Role> Drop for Watch<R> {
    /// No watch, no connection: also when a runtime ends and takes both along.
    fn drop(&mut self) {
        if let Some(link) = self.link.upgrade() {
            link.forget(self.id);
        }
    }
}
