//! The watchdog: renews leases, signals lost ones, and releases dropped locks. One task for all
//! locks.
//!
//! The work is in the shared [`Queue`]; the task only drives it. A manager that serves several
//! runtimes has such a task on each of them, over the same queue. When a runtime ends or is
//! blocked, another task does its work. When no runtime is left, a thread does the rest.

mod batch;
mod early_losses;
mod known_runners;
mod last_resort;
mod leases;
mod losses;
mod new_leases;
mod own_runtime;
mod pending_acquires;
mod queue;
mod queues;
mod recheck_timers;
mod releases;
mod runtime_check;
mod send_later;
mod shutdown;
mod task;
mod unparker;
mod wake;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::lease::LeaseState;
use crate::observe::Telemetry;
use crate::platform::process::Process;
use crate::platform::sync::SHARDS;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::AnyStore;
use crate::{Error, LostReason};
use early_losses::EarlyLosses;
use known_runners::KnownRunners;
use new_leases::NewLeases;
use own_runtime::OwnRuntime;
use pending_acquires::PendingAcquires;
use queue::Queue;
pub(crate) use queues::Queues;
use runtime_check::check_runtime;
use task::Runner;

/// Watches the holds of one manager.
pub(crate) struct Watchdog {
    store: AnyStore,
    telemetry: Arc<Telemetry>,
    /// How long a lock stays cached in this process after its last holder.
    linger: Duration,
    queues: Arc<dyn Queues>,
    /// Leases that no task has seen yet.
    new_leases: NewLeases,
    early_losses: EarlyLosses,
    queue: Mutex<Queue>,
    /// Caches which runtimes have a task for this watchdog.
    known_runners: KnownRunners,
    /// Acquisitions in progress. A shutdown waits for them, because the locks that they are granted
    /// have to be released.
    pending_acquires: PendingAcquires,
    /// Whether any task or thread waits for holds and releases to settle. Never reset.
    awaited: AtomicBool,
    /// Signalled when a hold or a release is settled.
    settled: Notify,
    /// The same, for threads.
    released: Condvar,
    /// Signalled when nothing more is granted. Several, because all acquisitions listen.
    stopped: [Notify; SHARDS],
    own_runtime: OwnRuntime,
    /// The process that created it.
    process: Process,
}

impl Watchdog {
    pub(crate) fn new(store: AnyStore, queues: Arc<dyn Queues>, linger: Duration) -> Self {
        let queue = Queue::default();
        Self {
            telemetry: Arc::new(Telemetry::new(store.kind())),
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

    pub(crate) fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// Returns an error in a fork of the process that created the manager: a fork may use nothing
    /// of it.
    fn check_process(&self) -> Result<(), Error> {
        if self.process.is_current() { Ok(()) } else { Err(forked()) }
    }

    /// Returns an error if no request can be sent from here: in a fork, or on a runtime without
    /// I/O.
    pub(crate) fn check_here(&self) -> Result<(), Error> {
        self.check_process()?;
        match Handle::try_current() {
            Ok(runtime) if !self.is_driven_by(runtime.id()) => {
                check_runtime(&self.store).map_err(|refusal| Error::InvalidOptions(refusal.into()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process.is_current()
    }

    /// Starts the task on this runtime unless it runs already. Returns an error if there is no
    /// suitable runtime.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), Error> {
        self.check_process()?;
        let started = match Handle::try_current() {
            Ok(runtime) => Runner::start(self, &runtime),
            Err(_) => {
                Err("a lock can only be acquired, and a leader watched, inside a tokio runtime")
            }
        };
        started.map_err(|refusal| Error::InvalidOptions(refusal.into()))
    }

    pub(crate) fn begin_acquire(&self) {
        self.pending_acquires.begin();
    }

    /// Counts the end of an acquisition: what it was granted is watched, or is queued for release.
    pub(crate) fn end_acquire(&self) {
        if self.is_of_this_process() {
            self.pending_acquires.end();
            if self.new_leases.is_shut_down() {
                self.settled.notify_waiters();
            }
        }
    }

    /// Watches a hold acquired at `requested_at` for `ttl`, until [`forget`](Self::forget) is
    /// called with its id. Returns the id, and whether the task was woken.
    pub(crate) fn watch(
        &self,
        hold: &Arc<LeaseState>,
        requested_at: Instant,
        ttl: Duration,
    ) -> (u64, bool) {
        let (id, wakes) = self.new_leases.watch(hold, requested_at, ttl);
        if wakes {
            self.queue().wake();
        }
        // After the lease is stored: a loss that arrives from here on finds it.
        if self.early_losses.take(hold.claim().token(), requested_at) {
            self.lose(hold);
        }
        (id, wakes)
    }

    /// Replaces the hold of a lease by the next one.
    pub(crate) fn hand_off(&self, id: u64, hold: &Arc<LeaseState>, now: Instant) {
        if self.new_leases.hand_off(id, hold) {
            return;
        }
        let mut queue = if self.new_leases.has(id) { self.leases() } else { self.queue() };
        // Checked under the queue's mutex: a shutdown either finds this hold or is noticed here.
        if self.is_shut_down() {
            hold.lose(LostReason::ShutDown);
        }
        queue.hand_off(id, hold, now);
        // The loss may have been reported when only the previous hold existed, which had already
        // ended.
        let is_lost = queue.leases.is_lost(id);
        drop(queue);
        if is_lost {
            self.lose(hold);
        }
    }

    /// Renews a lease now, because the renewal also changes the lock in the store.
    pub(crate) fn renew_now(&self, id: u64) {
        let mut queue = self.leases();
        queue.leases.renew_now(id, Instant::now());
        queue.wake();
    }

    /// Returns until when a lock of this name may be cached, if it may. Schedules its release.
    pub(crate) fn cache_until(&self, name: &str, now: Instant) -> Option<Instant> {
        let until = (!self.linger.is_zero()).then(|| now + self.linger)?;
        self.queue().recheck_at(name, until).then_some(until)
    }

    /// Schedules a check at `at` whether readers have to share the lock of this name; `false` if
    /// the manager is closing.
    pub(crate) fn recheck_readers_at(&self, name: &str, at: Instant) -> bool {
        self.queue().recheck_at(name, at)
    }

    /// Releases a lock whose time in the cache has ended, and admits readers.
    fn recheck(&self, name: &str) {
        if let Some(again) = self.queues.recheck(name) {
            // When the manager closes, it releases its cached locks itself.
            let _closing = self.queue().recheck_at(name, again);
        }
    }

    pub(crate) fn forget(&self, id: u64) {
        if !self.new_leases.forget(id) {
            self.queue().leases.forget(id);
        }
        // A task that waits sets this flag before it checks.
        if self.awaited.load(Ordering::SeqCst) {
            self.settled();
        }
    }

    /// Ensures that the work in the queue is done: by a task here or elsewhere, or by a thread.
    fn ensure_driven(self: &Arc<Self>) {
        if self.start().is_err() {
            self.start_last_resort();
            self.wait_for_own_runtime();
        }
    }

    /// A hold or a release is settled: wakes the tasks that wait for that, or may now end.
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

    /// Locks the queue, and moves all new leases into it.
    fn leases(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue();
        self.move_new_leases(&mut queue);
        queue
    }

    fn move_new_leases(&self, queue: &mut Queue) {
        for lease in self.new_leases.take() {
            queue.leases.watch(lease);
        }
    }

    /// Locks the queue, without the leases that no task has seen yet.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No panic can leave the queue half-changed, so a poisoned mutex is safe to use.
        self.queue.lock()
    }
}

#[cold]
fn forked() -> Error {
    Error::InvalidOptions(
        "this lock manager was made before a `fork`, and its connections and threads belong to \
         the parent process: connect a manager in this process, on a runtime that was started \
         after the fork"
            .into(),
    )
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").field("store", &self.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
