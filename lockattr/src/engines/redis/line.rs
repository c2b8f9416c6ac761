//! The task behind a connection: makes it, and then asks it now and then whether it is still there.
//!
//! The client gives up on requests that time out but keeps their connection (redis-rs PR 1032), so
//! one that is dead without a word would stay in use for ever. Hence the heartbeat.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::link::{Link, Outcome};
use super::sentinels::is_master;

/// Signs of life.
#[derive(Default)]
pub(super) struct Pulse {
    replied: AtomicBool,
    suspected: Notify,
    left: AtomicBool,
    leaves: Notify,
}

impl Pulse {
    /// The server has answered.
    pub(super) fn replied(&self) {
        self.replied.store(true, Ordering::Relaxed);
    }

    /// It has not, in time: ask it now.
    pub(super) fn suspect(&self) {
        self.suspected.notify_one();
    }

    /// The server is not the master any more: what it answers from now on does not count.
    fn leave(&self) {
        self.left.store(true, Ordering::Release);
        self.leaves.notify_waiters();
    }

    /// Returns when it is not the master any more: a question that is under way there may have no answer
    /// for long.
    pub(super) async fn until_left(&self) {
        let mut leaves = pin!(self.leaves.notified());
        // Listen first, look second: a signal in between is then not missed.
        leaves.as_mut().enable();
        if !self.is_left() {
            leaves.await;
        }
    }

    pub(super) fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
}

/// Connects, tells how that went, and stays with the connection for as long as it answers.
pub(super) async fn keep_line(
    link: Arc<Link>,
    runtime: runtime::Id,
    id: u64,
    told: oneshot::Sender<Outcome>,
) {
    let watch = Watch { link: Arc::downgrade(&link), id };
    let interval = link.config.timing.heartbeat;
    let outcome = link.connect(runtime, id).await;
    let watched = outcome.as_ref().ok().map(|live| {
        let sentinels = link.config.server.sentinels();
        (live.pulse.clone(), sentinels.map(|sentinels| sentinels.left(live.address.clone())))
    });
    // Nobody listens any more if all who asked have given up: then the connection that comes back
    // must not be kept here.
    drop(told.send(outcome));
    drop(link);
    match watched {
        Some((pulse, Some(left))) => tokio::select! {
            () = watch.until_silent(&pulse, interval) => {}
            () = left => pulse.leave(),
        },
        Some((pulse, None)) => watch.until_silent(&pulse, interval).await,
        None => {}
    }
}

/// Holds neither the link nor the connection while it sleeps: both close with their store.
struct Watch {
    link: Weak<Link>,
    id: u64,
}

impl Watch {
    async fn until_silent(&self, pulse: &Pulse, interval: Duration) {
        loop {
            let suspected = timeout(interval, pulse.suspected.notified()).await.is_ok();
            // What hides a server may have put another one in its place.
            if let Some(live) = self.link.upgrade().and_then(|link| link.live_with(self.id)) {
                live.raised.clear();
            }
            let replied = pulse.replied.swap(false, Ordering::Relaxed);
            if (suspected || !replied) && !self.answers().await {
                return;
            }
            // Some may have been refused.
            if let Some(link) = self.link.upgrade() {
                link.subscribe_all(self.id).await;
            }
        }
    }

    /// Whether the connection is still in use and answers; any answer will do, an error too. Only
    /// not that it is no master, where others say which server is.
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

impl Drop for Watch {
    /// No watch, no connection: also when a runtime ends and takes both along.
    fn drop(&mut self) {
        if let Some(link) = self.link.upgrade() {
            link.forget(self.id);
        }
    }
}
