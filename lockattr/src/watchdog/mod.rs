//! Renews leases, signals the lost ones, and gives dropped locks back: one task, none per lock.
//!
//! What it works on lies in the shared [`Queue`]; the task only drives it. A manager that serves
//! several runtimes has such a task on each, over the same queue: a runtime that ends or is blocked
//! takes its task along but not the work. Where no runtime is left, a thread does the rest.

mod batch;
mod early_losses;
mod known_runners;
mod last_resort;
mod leases;
mod new_leases;
mod own_runtime;
mod pending_acquires;
mod queue;
mod queues;
mod recheck_timers;
mod releases;
mod runtime_check;
mod task;

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use crate::lease::LeaseState;
use crate::platform::process::Process;
use crate::platform::sync::SHARDS;
use crate::store::{AnyStore, OwnerToken, ReleaseRequest};
use crate::{Error, LostReason};
use batch::send_releases;
use early_losses::EarlyLosses;
use known_runners::KnownRunners;
use new_leases::{NewLeases, place};
use own_runtime::OwnRuntime;
use pending_acquires::PendingAcquires;
use queue::Queue;
pub(crate) use queues::Queues;
use releases::PendingRelease;
use runtime_check::check_runtime;
use task::Runner;

/// The clock must not overflow, whatever limit was asked for.
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Watches the holds of one manager.
pub(crate) struct Watchdog {
    store: AnyStore,
    /// How long a lock is kept in this process after its last holder.
    linger: Duration,
    queues: Arc<dyn Queues>,
    /// What the tasks have not seen yet.
    new_leases: NewLeases,
    early_losses: EarlyLosses,
    queue: Mutex<Queue>,
    /// Where there is a task that works on it.
    known_runners: KnownRunners,
    /// Acquisitions under way: what they may be granted is to be given back before the end.
    pending_acquires: PendingAcquires,
    /// Whether anybody waits for holds and releases to be done with. Once it is so it stays so.
    awaited: AtomicBool,
    /// Signalled when a hold or a release is done with.
    settled: Notify,
    /// The same, for threads.
    released: Condvar,
    /// Signalled when nothing more is granted. Several, because all acquisitions listen.
    stopped: [Notify; SHARDS],
    own_runtime: OwnRuntime,
    /// The one that all of this works in.
    process: Process,
}

impl Watchdog {
    pub(crate) fn new(store: AnyStore, queues: Arc<dyn Queues>, linger: Duration) -> Self {
        let queue = Queue::default();
        Self {
            store,
            linger,
            queues,
            new_leases: NewLeases::new(),
            early_losses: EarlyLosses::default(),
            known_runners: KnownRunners::by(queue.left.clone()),
            queue: Mutex::new(queue),
            pending_acquires: PendingAcquires::default(),
            awaited: AtomicBool::new(false),
            settled: Notify::new(),
            released: Condvar::new(),
            stopped: std::array::from_fn(|_| Notify::new()),
            own_runtime: OwnRuntime::default(),
            process: Process::current(),
        }
    }

    pub(crate) fn store(&self) -> &AnyStore {
        &self.store
    }

    /// An error in a fork of the process that this was made in: there, nothing of it may be used.
    fn check_process(&self) -> Result<(), Error> {
        if self.process.is_current() { Ok(()) } else { Err(forked()) }
    }

    /// An error where the store cannot be asked: in a fork, or on a runtime that cannot reach it.
    pub(crate) fn check_here(&self) -> Result<(), Error> {
        self.check_process()?;
        match Handle::try_current() {
            Ok(runtime) if !self.is_driven_by(runtime.id()) => {
                check_runtime(&self.store).map_err(|refusal| Error::InvalidOptions(refusal.into()))
            }
            _ => Ok(()),
        }
    }

    /// Whether this is the process that it was made in.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process.is_current()
    }

    /// Starts the task on this runtime, unless it runs; an error if there is none to run it on.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), Error> {
        self.check_process()?;
        let started = match Handle::try_current() {
            Ok(runtime) => Runner::start(self, &runtime),
            Err(_) => Err("a lock can only be acquired inside a tokio runtime"),
        };
        started.map_err(|refusal| Error::InvalidOptions(refusal.into()))
    }

    /// An acquisition begins.
    pub(crate) fn begin_acquire(&self) {
        self.pending_acquires.begin();
    }

    /// An acquisition has ended: what it was granted is watched, or owed to the store.
    pub(crate) fn end_acquire(&self) {
        if self.is_of_this_process() {
            self.pending_acquires.end();
            if self.new_leases.is_shut_down() {
                self.settled.notify_waiters();
            }
        }
    }

    /// Watches a hold acquired at `asked` for `ttl` until [`forget`](Self::forget) gets its id.
    /// Also whether the task was woken for it.
    pub(crate) fn watch(
        &self,
        hold: &Arc<LeaseState>,
        asked: Instant,
        ttl: Duration,
    ) -> (u64, bool) {
        let (id, wakes) = self.new_leases.watch(hold, asked, ttl);
        if wakes {
            self.queue().wake();
        }
        // After that: a loss that comes now finds the lease.
        if self.early_losses.take(hold.claim().token(), asked) {
            lose(hold);
        }
        (id, wakes)
    }

    /// Watches the next hold of a lease in place of the last one.
    pub(crate) fn hand_off(&self, id: u64, hold: &Arc<LeaseState>, now: Instant) {
        if self.new_leases.hand_off(id, hold) {
            return;
        }
        let mut queue = if self.new_leases.has(id) { self.leases() } else { self.queue() };
        // While it is locked, so that a shutdown either finds this hold or is seen here.
        if self.is_shut_down() {
            hold.lose(LostReason::ShutDown);
        }
        queue.hand_off(id, hold, now);
        // A loss that was told to the last hold, when that was over already.
        let is_lost = queue.leases.is_lost(id);
        drop(queue);
        if is_lost {
            lose(hold);
        }
    }

    /// Renews a lease now, because the store is to learn something with that.
    pub(crate) fn renew_now(&self, id: u64) {
        let mut queue = self.leases();
        queue.leases.renew_now(id, Instant::now());
        queue.wake();
    }

    /// Until when a lock of this name may be kept in its line, if it may: its end is seen to.
    pub(crate) fn cache_until(&self, name: &str, now: Instant) -> Option<Instant> {
        let until = now.checked_add(self.linger).filter(|until| *until > now)?;
        self.queue().recheck_at(name, until).then_some(until)
    }

    /// Looks at `at` whether readers are to share the lock of this name; `false` if no caller can acquire here any more.
    pub(crate) fn recheck_readers_at(&self, name: &str, at: Instant) -> bool {
        self.queue().recheck_at(name, at)
    }

    /// Gives a lock back that was kept long enough, and looks at readers.
    fn recheck(&self, name: &str) {
        if let Some(again) = self.queues.recheck(name) {
            // If nothing is kept any more, its line is emptied.
            let _closing = self.queue().recheck_at(name, again);
        }
    }

    /// Forgets a hold that was given back.
    pub(crate) fn forget(&self, id: u64) {
        if !self.new_leases.forget(id) {
            self.queue().leases.forget(id);
        }
        // A waiter said so before it looked.
        if self.awaited.load(Ordering::SeqCst) {
            self.settled();
        }
    }

    /// Whether the claim with this token has its lock.
    pub(crate) fn holds(&self, token: OwnerToken) -> bool {
        let (holds, now) = (self.leases().leases.of(token), Instant::now());
        holds.iter().any(|hold| hold.is_kept(now))
    }

    /// Whether the claim with this token had its lock and has it no more, though its holder has not let go
    /// of it yet.
    pub(crate) fn has_lost(&self, token: OwnerToken) -> bool {
        let (holds, now) = (self.leases().leases.of(token), Instant::now());
        !holds.is_empty() && holds.iter().all(|hold| !hold.is_kept(now))
    }

    /// The store says by itself that the claim with this token has lost its lock.
    pub(crate) fn lost(&self, token: OwnerToken) {
        // Before the look: a lease that comes behind it finds the loss.
        self.early_losses.note(token);
        let holds = self.leases().leases.lose_all_of(token);
        if !holds.is_empty() {
            self.early_losses.forget(token);
        }
        // Not while the queue is locked: the caller that is woken may want it.
        holds.iter().for_each(|hold| lose(hold));
    }

    /// The lease of the claim with this token is over, for its holder as for the store.
    #[cfg(feature = "testing")]
    pub(crate) fn expired(&self, token: OwnerToken) {
        let holds = self.leases().leases.of(token);
        holds.iter().for_each(|hold| hold.lose(LostReason::Expired));
    }

    /// Returns once nothing is to be given back any more.
    #[cfg(feature = "testing")]
    pub(crate) async fn all_released(&self) {
        self.until(|queue| queue.releases.all_settled()).await;
    }

    /// Gives a lock back that no caller waits for, until its lease has ended by itself.
    pub(crate) fn release_later(
        self: &Arc<Self>,
        lock: ReleaseRequest,
        until: Instant,
        held: bool,
    ) {
        if !self.is_of_this_process() {
            return;
        }
        let now = Instant::now();
        self.queue().release(PendingRelease::new(lock, until, held, now), now);
        self.ensure_driven();
    }

    /// Undoes what the store may have done for a claim for `ttl` whose caller gave up: until it answers, or
    /// the claim's entry and a lease that was granted to it have ended by themselves.
    pub(crate) fn undo(self: &Arc<Self>, lock: ReleaseRequest, ttl: Duration) {
        let now = Instant::now();
        let release = PendingRelease::new(lock, now + ttl, false, now);
        let lasts = self.store.entry_lifetime(ttl);
        self.queue().release(release.at_least_for(lasts), now);
        self.ensure_driven();
    }

    /// Tries the releases again that got no answer, now.
    pub(crate) fn retry_now(self: &Arc<Self>) {
        {
            let mut queue = self.queue();
            queue.retry_now();
            queue.wake();
        }
        self.ensure_driven();
    }

    /// Hands a release to the store's client and leaves its answer to the task: when this returns, every
    /// later command for the key comes after it. Whether it waits for its answer.
    pub(crate) async fn release_in_background(
        self: &Arc<Self>,
        lock: ReleaseRequest,
        until: Instant,
        held: bool,
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
            // Back into the queue with it.
            drop(refused);
            self.ensure_driven();
        }
        waits
    }

    /// Ensures that what lies in the queue is done: here, or elsewhere, or by a thread.
    fn ensure_driven(self: &Arc<Self>) {
        if self.start().is_err() {
            self.start_last_resort();
            self.wait_for_own_runtime();
        }
    }

    /// Whether nothing more may be acquired.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.new_leases.is_shut_down()
    }

    /// Lets the tasks end once nothing is held or to be released.
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
        // Not while the queue is locked: they go into it.
        self.queues.release_cached();
        self.settled.notify_waiters();
        self.wait_for_own_runtime();
    }

    /// Returns once nothing more may be acquired.
    pub(crate) async fn stopped(&self) {
        let mut stopped = pin!(self.stopped[place()].notified());
        // Listen first, look second: a shutdown in between is then not missed.
        stopped.as_mut().enable();
        if !self.is_shut_down() {
            stopped.await;
        }
    }

    /// Grants nothing more, signals every holder, waits up to `limit` for them to let go, lets go
    /// for them, and waits as long again for the store.
    pub(crate) async fn shut_down(self: &Arc<Self>, limit: Duration) {
        if let Err(error) = self.check_process() {
            tracing::error!(%error, "nothing is shut down");
            return;
        }
        self.close();
        let holds = {
            self.new_leases.shut_down();
            self.leases().leases.all()
        };
        // Not while the queue is locked: the caller that is woken may want it.
        holds.iter().for_each(|hold| hold.lose(LostReason::ShutDown));
        self.stopped.iter().for_each(Notify::notify_waiters);
        if let Err(error) = self.start() {
            tracing::error!(%error, "nothing can be waited for");
            return;
        }
        let limit = limit.min(LONGEST_SHUTDOWN);
        let let_go = |queue: &Queue| queue.leases.is_empty() && self.pending_acquires.none();
        timeout(limit, self.until(let_go)).await.ok();
        let deadline = Instant::now() + limit;
        let abandoned = self.leases().leases.abandon();
        if !abandoned.is_empty() {
            tracing::warn!(count = abandoned.len(), "released locks whose holders did not stop");
            for hold in abandoned {
                let lock = ReleaseRequest::new(hold.claim().clone());
                self.release_later(lock, hold.store_lets_go_at(), true);
            }
        }
        // A caller that lets go from here on does so in time or not at all.
        timeout_at(deadline, self.until(|queue| queue.releases.all_settled())).await.ok();
        self.queue().wake();
    }

    async fn until(&self, done: impl Fn(&Queue) -> bool) {
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

    /// A hold or a release is done with: a task that waits for that, or may now end, looks again.
    fn settled(&self) {
        let queue = self.queue();
        if queue.closing {
            queue.wake();
        }
        if queue.releases.all_settled() {
            self.own_runtime.settled();
        }
        drop(queue);
        self.settled.notify_waiters();
        self.released.notify_all();
    }

    /// The queue, which has all leases.
    fn leases(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue();
        for lease in self.new_leases.take() {
            queue.leases.watch(lease);
        }
        queue
    }

    /// The queue, but for leases that no task has seen yet.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing in the queue can panic half-way, so a poisoned lock is still good.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cold]
fn forked() -> Error {
    Error::InvalidOptions(
        "this lock manager was made before a `fork`, in another process, whose connections and \
         threads it needs: connect one in this process, on a runtime that was started after the fork"
            .into(),
    )
}

/// Tells a holder that the store has its lock no more.
fn lose(hold: &LeaseState) {
    // Not where it is being released: that may have overtaken a renewal.
    if hold.is_kept(Instant::now()) {
        let key = hold.claim().key().as_str();
        tracing::warn!(key, "the lease was lost: the store no longer has it as ours");
    }
    hold.lose(LostReason::Taken);
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").field("store", &self.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
