//! The task that keeps a connection: it connects, and then asks the server now and then whether it is
//! still there.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::Notify;

use super::link::{Link, Live};
use super::sentinels::is_master;
use crate::store::heartbeat::Heartbeat;
use crate::store::slots::Attempt;

/// Whether sentinels have named another server as the master: answers of this one do not count any more.
#[derive(Default)]
pub(super) struct Demotion {
    known: AtomicBool,
    notify: Notify,
}

impl Demotion {
    fn notify(&self) {
        self.known.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Returns when it is known: a request that is under way may have no answer for long.
    pub(super) async fn notified(&self) {
        let mut notified = pin!(self.notify.notified());
        // Subscribes before it reads the flag, so that no notification is missed in between.
        notified.as_mut().enable();
        if !self.is_known() {
            notified.await;
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }
}

/// Connects, returns the outcome to the callers that wait for it, and keeps the connection for as long as
/// the server answers.
pub(super) async fn run_connection(
    link: Arc<Link>,
    runtime: runtime::Id,
    attempt: Attempt<Arc<Live>>,
) {
    let task = HeartbeatTask { link: Arc::downgrade(&link), id: attempt.id };
    let interval = link.config.timing.heartbeat;
    let outcome = link.connect(runtime, attempt.id).await;
    let connected = outcome.as_ref().ok().map(|live| {
        let sentinels = link.config.server.sentinels();
        let demoted = sentinels.map(|sentinels| sentinels.left(live.address.clone()));
        (live.heartbeat.clone(), live.demotion.clone(), demoted)
    });
    attempt.finish(outcome);
    drop(link);
    match connected {
        Some((heartbeat, demotion, Some(demoted))) => tokio::select! {
            () = task.until_silent(&heartbeat, interval) => {}
            () = demoted => demotion.notify(),
        },
        Some((heartbeat, _, None)) => task.until_silent(&heartbeat, interval).await,
        None => {}
    }
}

/// Holds neither the connection nor its slot while it sleeps: both close with their store.
struct HeartbeatTask {
    link: Weak<Link>,
    id: u64,
}

impl HeartbeatTask {
    async fn until_silent(&self, heartbeat: &Heartbeat, interval: Duration) {
        loop {
            let must_ask = heartbeat.must_ask(interval).await;
            // A proxy may have put another server behind this connection.
            if let Some(live) = self.link.upgrade().and_then(|link| link.live_with(self.id)) {
                live.raised.clear();
            }
            if must_ask && !self.answers().await {
                return;
            }
            // The server may have refused some of the subscriptions.
            if let Some(link) = self.link.upgrade() {
                link.subscribe_all(self.id).await;
            }
        }
    }

    /// Whether the connection is still in use and answers; any answer will do, an error too. Only
    /// not that it is no master, where sentinels name the master.
    async fn answers(&self) -> bool {
        let Some(link) = self.link.upgrade() else { return false };
        let Some(live) = link.live_with(self.id) else { return false };
        let found = link.config.server.sentinels().is_some();
        drop(link);
        let asked = match found {
            true => is_master(&mut live.connection()).await,
            false => {
                redis::cmd("PING").query_async::<()>(&mut live.connection()).await.map(|()| true)
            }
        };
        match asked {
            Ok(serves) => serves,
            Err(error) => !error.is_timeout() && !error.is_unrecoverable_error(),
        }
    }
}

impl Drop for HeartbeatTask {
    /// A connection without this task is not used: also when a runtime ends and takes both along.
    fn drop(&mut self) {
        if let Some(link) = self.link.upgrade() {
            link.forget(self.id);
        }
    }
}
