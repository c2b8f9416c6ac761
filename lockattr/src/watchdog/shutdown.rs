//! The end of a manager: nothing more is acquired, holders are signalled, and their locks are
//! released.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use super::Watchdog;
use super::new_leases::shard_index;
use super::queue::Queue;
use crate::LostReason;
use crate::store::ReleaseRequest;

impl Watchdog {
    /// Whether nothing more may be acquired.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.new_leases.is_shut_down()
    }

    /// Lets the tasks end once nothing is held and no release is pending.
    pub(crate) fn close(&self) {
        if !self.is_of_this_process() {
            return;
        }
        {
            self.awaited.store(true, Ordering::SeqCst);
            let mut queue = self.queue();
            queue.closing = true;
            queue.wake();
        }
        // Outside the queue's mutex: the releases are added to that queue.
        self.queues.release_cached();
        self.settled.notify_waiters();
        self.wait_for_own_runtime();
    }

    /// Returns once nothing more may be acquired.
    pub(crate) async fn stopped(&self) {
        let mut stopped = pin!(self.stopped[shard_index()].notified());
        // Register first, check second, so that a shutdown in between is not missed.
        stopped.as_mut().enable();
        if !self.is_shut_down() {
            stopped.await;
        }
    }

    /// Grants nothing more, signals every holder, waits up to `limit` for the holders to release,
    /// releases the rest for them, and waits as long again for the store.
    pub(crate) async fn shut_down(self: &Arc<Self>, limit: Duration) {
        if let Err(error) = self.check_process() {
            tracing::error!(error.message = %error, "the lock manager was not shut down");
            return;
        }
        self.close();
        let holds = {
            self.new_leases.shut_down();
            self.leases().leases.all()
        };
        // Outside the queue's mutex: a woken task may lock it.
        holds.iter().for_each(|hold| hold.lose(LostReason::ShutDown));
        self.stopped.iter().for_each(Notify::notify_waiters);
        if let Err(error) = self.start() {
            tracing::error!(
                error.message = %error,
                "the shutdown did not wait for bodies and releases"
            );
            return;
        }
        let is_idle = |queue: &Queue| queue.leases.is_empty() && self.pending_acquires.none();
        timeout(limit, self.until(is_idle)).await.ok();
        let deadline = Instant::now() + limit;
        let abandoned = self.leases().leases.abandon();
        if !abandoned.is_empty() {
            tracing::warn!(
                lockattr.count = abandoned.len(),
                "released locks whose holders did not stop"
            );
            for hold in abandoned {
                let lock = ReleaseRequest::new(hold.claim().clone());
                let until = hold.expires_in_store_at();
                self.release_later(lock, until, Some(hold));
            }
        }
        // A holder that releases from here on does so in time or not at all.
        timeout_at(deadline, self.until(|queue| queue.releases.all_settled())).await.ok();
        self.queue().wake();
    }

    pub(super) async fn until(&self, done: impl Fn(&Queue) -> bool) {
        self.awaited.store(true, Ordering::SeqCst);
        loop {
            let mut settled = pin!(self.settled.notified());
            settled.as_mut().enable();
            if done(&self.leases()) {
                return;
            }
            settled.await;
        }
    }

    /// Returns once no release is pending any more.
    #[cfg(feature = "testing")]
    pub(crate) async fn all_released(&self) {
        self.until(|queue| queue.releases.all_settled()).await;
    }
}
