//! Leases that the task has not seen yet. Most are released before its next check, and so never
//! enter the queue, for whose mutex all locks of a manager would contend.
//!
//! Each thread stores leases in its own shard. Code that uses the queue's leases moves them there
//! first.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::LostReason;
use crate::lease::LeaseState;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::platform::sync::{NameHasher, SHARDS};

/// Leases that were watched since the last check, and until when the tasks sleep.
pub(super) struct NewLeases {
    shards: [Mutex<Shard>; SHARDS],
    /// One bit for each shard that was used since all leases were taken: few threads use theirs.
    used: AtomicU64,
    made: Instant,
    /// In nanoseconds after `made`. Only an earlier timer has to wake the tasks. While a task
    /// checks the queue, or if there is no task, every timer does.
    asleep_until: AtomicU64,
    /// Whether nothing more is granted.
    shut_down: AtomicBool,
}

#[derive(Default)]
struct Shard {
    leases: HashMap<u64, Lease, NameHasher>,
    last_id: u64,
}

/// A lease that is to be watched.
pub(super) struct Lease {
    pub(super) id: u64,
    pub(super) hold: Arc<LeaseState>,
    /// When to renew; `None` if never.
    pub(super) renew_at: Option<Instant>,
}

impl NewLeases {
    pub(super) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            used: AtomicU64::new(0),
            made: Instant::now(),
            asleep_until: AtomicU64::new(u64::MAX),
            shut_down: AtomicBool::new(false),
        }
    }

    /// Watches a hold acquired at `requested_at` for `ttl`; after a shutdown, signals it at once.
    /// Returns the lease's id, and whether the tasks have to be woken for it.
    pub(super) fn watch(
        &self,
        hold: &Arc<LeaseState>,
        requested_at: Instant,
        ttl: Duration,
    ) -> (u64, bool) {
        let renew_at = hold.renew_at(requested_at, ttl);
        let (shard_index, hold) = (shard_index(), hold.clone());
        let ends = hold.valid_until();
        let timer = renew_at.map_or(ends, |renew_at| renew_at.min(ends));
        let (id, to_signal) = {
            let mut shard = self.shard(shard_index);
            self.mark_used(shard_index);
            shard.last_id += 1;
            let id = shard.last_id * SHARDS as u64 + shard_index as u64;
            let to_signal = self.is_shut_down().then(|| hold.clone());
            shard.leases.insert(id, Lease { id, hold, renew_at });
            (id, to_signal)
        };
        // Outside the shard's mutex: a woken task may lock it.
        if let Some(hold) = to_signal {
            hold.lose(LostReason::ShutDown);
        }
        (id, self.after_made(timer) < self.asleep_until.load(Ordering::SeqCst))
    }

    /// Replaces the hold of a lease by the next one. `false` if the tasks have seen the lease, or
    /// the lease is not renewed yet.
    pub(super) fn hand_off(&self, id: u64, hold: &Arc<LeaseState>) -> bool {
        let mut shard = self.shard_of(id);
        let lease = shard.leases.get_mut(&id).filter(|lease| lease.renew_at.is_some());
        let Some(lease) = lease.filter(|_| !self.is_shut_down()) else { return false };
        lease.hold = hold.clone();
        true
    }

    pub(super) fn has(&self, id: u64) -> bool {
        self.shard_of(id).leases.contains_key(&id)
    }

    /// Forgets a hold that was released; `false` if the tasks have seen it.
    pub(super) fn forget(&self, id: u64) -> bool {
        let lease = self.shard_of(id).leases.remove(&id);
        lease.is_some()
    }

    /// Takes all leases, sorted by the order in which each thread stored them.
    pub(super) fn take(&self) -> Vec<Lease> {
        let mut all = Vec::new();
        let mut used = self.used.swap(0, Ordering::SeqCst);
        while used != 0 {
            let shard_index = used.trailing_zeros() as usize;
            all.extend(self.shard(shard_index).leases.drain().map(|(_, lease)| lease));
            used &= used - 1;
        }
        all.sort_unstable_by_key(|lease| lease.id);
        all
    }

    /// A task begins to check what is due: from here on, each new lease wakes it.
    pub(super) fn begin_check(&self) {
        self.asleep_until.store(u64::MAX, Ordering::SeqCst);
    }

    /// The task has seen all leases stored before its check, and sleeps until `until`.
    pub(super) fn set_asleep_until(&self, until: Option<Instant>) {
        let until = until.map_or(u64::MAX, |until| self.after_made(until));
        self.asleep_until.store(until, Ordering::SeqCst);
    }

    /// Stops granting: holds watched from here on are signalled at once.
    pub(super) fn shut_down(&self) {
        self.shut_down.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::SeqCst)
    }

    /// Marks a locked shard as used. A thread that takes all leases sees the mark, or waits for the shard's
    /// mutex.
    fn mark_used(&self, shard_index: usize) {
        let bit = 1 << shard_index;
        // Usually the bit is set already, and reading it leaves the cache line shared.
        if self.used.load(Ordering::SeqCst) & bit == 0 {
            self.used.fetch_or(bit, Ordering::SeqCst);
        }
    }

    fn after_made(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.made).as_nanos();
        // Clamped: later than any clock reading, but distinct from `u64::MAX`.
        u64::try_from(after).unwrap_or(u64::MAX).min(u64::MAX - 1)
    }

    fn shard_of(&self, id: u64) -> MutexGuard<'_, Shard> {
        // The remainder fits.
        self.shard((id % SHARDS as u64) as usize)
    }

    fn shard(&self, shard_index: usize) -> MutexGuard<'_, Shard> {
        // No panic can leave this half-changed, so a poisoned mutex is safe to use.
        self.shards[shard_index].lock()
    }
}

/// The shard in which this thread stores leases.
pub(super) fn shard_index() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD_INDEX: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    // Thread-local data may be gone on a thread that is ending.
    SHARD_INDEX.try_with(|shard_index| *shard_index).unwrap_or_default()
}

#[cfg(test)]
mod tests;
