//! Renews leases, signals the lost ones, and gives dropped locks back: one task, none per lock.
//!
//! What it works on lies in the shared [`Queue`]; the task only drives it. A manager that serves
//! several runtimes has such a task on each, over the same queue: a runtime that ends or is blocked
//! takes its task along but not the work.

mod queue;
mod task;

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::LostReason;
use crate::hold::Hold;
use crate::store::{Claim, Store};
use queue::{PendingRelease, Queue};
use task::{Runner, send_releases};

/// The clock must not overflow, whatever limit was asked for.
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Watches the holds of one manager.
pub(crate) struct Watchdog {
    store: Arc<dyn Store>,
    queue: Mutex<Queue>,
    /// Signalled when a hold or a release is done with.
    settled: Notify,
}

impl Watchdog {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, queue: Mutex::default(), settled: Notify::new() }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Starts the task on this runtime, unless it runs. Where there is no runtime, the work waits
    /// for the next caller that has one.
    pub(crate) fn start(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current() {
            Runner::start(self, &runtime);
        }
    }

    /// Watches a hold acquired at `asked` for `ttl` until [`forget`](Self::forget) is told its id.
    pub(crate) fn watch(&self, hold: &Arc<Hold>, asked: Instant, ttl: Duration) -> u64 {
        self.queue().watch(hold.clone(), asked, ttl)
    }

    /// Forgets a hold that ended.
    pub(crate) fn forget(&self, id: u64) {
        self.queue().forget(id);
        self.settled.notify_waiters();
    }

    /// Gives a lock back that nobody waits for, until its lease has ended by itself.
    pub(crate) fn release_later(self: &Arc<Self>, claim: Arc<Claim>, until: Instant, held: bool) {
        self.queue().release(PendingRelease { claim, until, held }, Instant::now());
        self.start();
    }

    /// Sends a release and leaves its answer to the task: when this returns, every later command
    /// for the key comes after it.
    pub(crate) async fn release_in_background(
        self: &Arc<Self>,
        claim: Arc<Claim>,
        until: Instant,
        held: bool,
    ) {
        let releases = vec![PendingRelease { claim, until, held }];
        let mut under_way = send_releases(self.store.clone(), releases);
        let sent = poll_fn(|context| Poll::Ready(under_way.as_mut().poll(context)));
        match sent.await {
            Poll::Ready(answer) => self.settle(answer),
            Poll::Pending => {
                self.queue().adopt(under_way);
                self.start();
            }
        }
    }

    /// Whether nothing more may be acquired.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.queue().shut_down
    }

    /// Lets the tasks end once nothing is held or to be released.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.closing = true;
        queue.wake();
    }

    /// Grants nothing more, signals every holder, waits up to `limit` for them to let go, lets go
    /// for them, and waits as long again for the store.
    pub(crate) async fn shut_down(self: &Arc<Self>, limit: Duration) {
        {
            let mut queue = self.queue();
            queue.shut_down = true;
            queue.closing = true;
            queue.lose_all(LostReason::ShutDown);
        }
        if Handle::try_current().is_err() {
            tracing::error!("shut down outside a tokio runtime: nothing can be waited for");
            return;
        }
        self.start();
        let limit = limit.min(LONGEST_SHUTDOWN);
        self.until(Instant::now() + limit, |queue| !queue.is_holding()).await;
        let deadline = Instant::now() + limit;
        let abandoned = self.queue().abandon();
        if !abandoned.is_empty() {
            tracing::warn!(count = abandoned.len(), "released locks whose holders did not stop");
        }
        for claim in abandoned {
            self.release_later(claim, deadline, true);
        }
        self.queue().wake();
        self.until(deadline, Queue::is_settled).await;
    }

    async fn until(&self, deadline: Instant, done: impl Fn(&Queue) -> bool) {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            if done(&self.queue()) || timeout_at(deadline, settled).await.is_err() {
                return;
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing in the queue can panic half-way, so a poisoned lock is still good.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").field("store", &self.store).finish_non_exhaustive()
    }
}
