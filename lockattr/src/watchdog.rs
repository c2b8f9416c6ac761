//! The one task of a manager: renews leases, signals the lost ones, gives dropped locks back.
//!
//! What it works on lies in the shared [`Queue`]; the task only drives it. So a runtime that ends
//! takes the task but not the work: another runtime that needs it starts it again.

mod queue;
mod task;

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::LostReason;
use crate::hold::Hold;
use crate::store::{Claim, Store};
use queue::{PendingRelease, Queue};
use task::{Runner, UnderWay, send_release};

/// The clock must not overflow, whatever limit was asked for.
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Watches the holds of one manager.
pub(crate) struct Watchdog {
    store: Arc<dyn Store>,
    queue: Mutex<Queue>,
    /// Releases that a caller has sent and left to the task.
    adopted: Mutex<Vec<UnderWay>>,
    wake: Notify,
    /// Signalled when a hold or a release is done with.
    settled: Notify,
    running: AtomicBool,
    closing: AtomicBool,
}

impl Watchdog {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            queue: Mutex::default(),
            adopted: Mutex::default(),
            wake: Notify::new(),
            settled: Notify::new(),
            running: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Watches a hold acquired at `asked` for `ttl` until [`forget`](Self::forget) is told its id.
    pub(crate) fn watch(self: &Arc<Self>, hold: &Arc<Hold>, asked: Instant, ttl: Duration) -> u64 {
        let runtime = Handle::try_current().ok();
        let (id, sooner) = self.queue().watch(hold.clone(), asked, ttl, runtime);
        if sooner {
            self.wake.notify_one();
        }
        self.start();
        id
    }

    /// Forgets a hold that ended.
    pub(crate) fn forget(&self, id: u64) {
        self.queue().forget(id);
        self.settled.notify_waiters();
    }

    /// Gives a lock back that nobody waits for, until its lease has ended by itself.
    pub(crate) fn release_later(self: &Arc<Self>, claim: Arc<Claim>, until: Instant) {
        self.queue().release(PendingRelease { claim, until }, Instant::now());
        self.wake.notify_one();
        self.start();
    }

    /// Sends a release and leaves its answer to the task: when this returns, every later command
    /// for the key comes after it.
    pub(crate) async fn release_in_background(self: &Arc<Self>, claim: Arc<Claim>, until: Instant) {
        let releases = vec![PendingRelease { claim, until }];
        let mut under_way = send_release(self.store.clone(), releases);
        let sent = poll_fn(|context| Poll::Ready(under_way.as_mut().poll(context)));
        match sent.await {
            Poll::Ready(answer) => self.settle(answer),
            Poll::Pending => {
                self.adopted().push(under_way);
                self.wake.notify_one();
                self.start();
            }
        }
    }

    /// Whether nothing more may be acquired.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Lets the task end once nothing is held or to be released.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Signals every holder, waits up to `limit` for them to let go, then lets go for them.
    pub(crate) async fn shut_down(self: &Arc<Self>, limit: Duration) {
        self.close();
        let deadline = Instant::now() + limit.min(LONGEST_SHUTDOWN);
        self.queue().lose_all(LostReason::ShutDown);
        self.until(deadline, |queue| !queue.is_holding()).await;
        let abandoned = self.queue().abandon();
        if !abandoned.is_empty() {
            tracing::warn!(count = abandoned.len(), "released locks whose holders did not stop");
        }
        let deadline = Instant::now() + limit.min(LONGEST_SHUTDOWN);
        for claim in abandoned {
            self.release_later(claim, deadline);
        }
        // Commands under way are in nobody's queue, but the task ends only when there are none.
        self.wake.notify_one();
        let running = || self.running.load(Ordering::Acquire);
        self.until(deadline, |queue| queue.is_empty() && !running()).await;
    }

    async fn until(&self, deadline: Instant, done: impl Fn(&Queue) -> bool) {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            if done(&self.queue()) {
                return;
            }
            if tokio::time::timeout_at(deadline, settled).await.is_err() {
                return;
            }
        }
    }

    /// Starts the task on this runtime if it runs on none. Where there is no runtime either, the
    /// work waits for the next caller that has one.
    fn start(self: &Arc<Self>) {
        if !self.running.load(Ordering::Acquire)
            && let Ok(runtime) = Handle::try_current()
        {
            Runner::start(self, &runtime);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing in the queue can panic half-way, so a poisoned lock is still good.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn adopted(&self) -> MutexGuard<'_, Vec<UnderWay>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").field("store", &self.store).finish_non_exhaustive()
    }
}
