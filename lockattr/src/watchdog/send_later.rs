//! Releases that no caller waits for: queued, or sent and left to the task.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Watchdog;
use super::batch::send_releases;
use super::releases::PendingRelease;
use super::task::Runner;
use crate::lease::LeaseState;
use crate::store::ReleaseRequest;

impl Watchdog {
    /// Releases a lock for which no caller waits; retried until its lease has expired.
    pub(crate) fn release_later(
        self: &Arc<Self>,
        lock: ReleaseRequest,
        until: Instant,
        held: Option<Arc<LeaseState>>,
    ) {
        if !self.is_of_this_process() {
            return;
        }
        let now = Instant::now();
        self.queue().release(PendingRelease::new(lock, until, held, now), now);
        self.ensure_driven();
    }

    /// Undoes what the store may have done for a claim for `ttl` whose caller gave up. Retried
    /// until the store answers, or until the claim's entry and any lease granted to it have
    /// expired.
    pub(crate) fn undo(self: &Arc<Self>, lock: ReleaseRequest, ttl: Duration) {
        if !self.is_of_this_process() {
            return;
        }
        let now = Instant::now();
        let release = PendingRelease::new(lock, now + ttl, None, now);
        let lifetime = self.store.entry_lifetime(ttl);
        self.queue().release(release.retry_longer(lifetime), now);
        self.ensure_driven();
    }

    /// Retries now all releases that got no answer.
    pub(crate) fn retry_now(self: &Arc<Self>) {
        {
            let mut queue = self.queue();
            queue.retry_now();
            queue.wake();
        }
        self.ensure_driven();
    }

    /// Passes a release to the store's client and leaves its answer to the task. When this returns,
    /// every later command for the key is sent after it. Returns whether the client waits for the
    /// answer.
    pub(crate) async fn release_in_background(
        self: &Arc<Self>,
        lock: ReleaseRequest,
        until: Instant,
        held: Option<Arc<LeaseState>>,
    ) -> bool {
        let runtime = match Handle::try_current() {
            Ok(runtime) if Runner::start(self, &runtime).is_ok() => runtime.id(),
            _ => {
                self.release_later(lock, until, held);
                return false;
            }
        };
        let releases = vec![PendingRelease::new(lock, until, held, Instant::now())];
        self.queue().releases.sent_by_caller();
        let mut under_way = send_releases(self.clone(), releases);
        let sent = poll_fn(|context| Poll::Ready(under_way.as_mut().poll(context)));
        let waits = sent.await.is_pending();
        if waits {
            let refused = self.queue().adopt(runtime, under_way);
            // If no task took it over, its drop puts the release back into the queue.
            drop(refused);
            self.ensure_driven();
        }
        waits
    }
}
