//! The leases that the task has not seen yet. Most are given back before it looks, and so never come to the
//! queue, whose mutex all locks of a manager would meet at.
//!
//! Each thread puts leases down in a part of its own. A caller that looks at the queue takes them along first.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::LostReason;
use crate::lease::LeaseState;
use crate::platform::sync::{NameHasher, SHARDS};

/// Leases that were watched since the last look, and until when the tasks sleep.
pub(super) struct NewLeases {
    shards: [Mutex<Shard>; SHARDS],
    /// A bit for each part in which something was put down since all were taken: most threads have none.
    used: AtomicU64,
    made: Instant,
    /// So many nanoseconds after `made`: only an earlier timer has to wake the tasks. All do while one of
    /// them looks, or there is none.
    asleep_until: AtomicU64,
    /// Nothing more is granted.
    shut_down: AtomicBool,
}

#[derive(Default)]
struct Shard {
    leases: HashMap<u64, Lease, NameHasher>,
    last_id: u64,
}

/// One of them.
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

    /// Watches a hold acquired at `asked` for `ttl`; after a shutdown, tells it at once. Its number, and
    /// whether the tasks are to be woken for it.
    pub(super) fn watch(
        &self,
        hold: &Arc<LeaseState>,
        asked: Instant,
        ttl: Duration,
    ) -> (u64, bool) {
        let renew_at = hold.renew_at(asked, ttl);
        let (place, hold) = (place(), hold.clone());
        let ends = hold.valid_until();
        let timer = renew_at.map_or(ends, |renew_at| renew_at.min(ends));
        let (id, told) = {
            let mut shard = self.shard(place);
            self.mark_used(place);
            shard.last_id += 1;
            let id = shard.last_id * SHARDS as u64 + place as u64;
            let told = self.is_shut_down().then(|| hold.clone());
            shard.leases.insert(id, Lease { id, hold, renew_at });
            (id, told)
        };
        // Not while its part is locked: the caller that is woken may want it.
        if let Some(hold) = told {
            hold.lose(LostReason::ShutDown);
        }
        (id, self.after_made(timer) < self.asleep_until.load(Ordering::SeqCst))
    }

    /// Watches the next hold of a lease in place of the last one; false if the tasks have seen the lease, or
    /// it is not renewed yet.
    pub(super) fn hand_off(&self, id: u64, hold: &Arc<LeaseState>) -> bool {
        let mut shard = self.shard_of(id);
        let lease = shard.leases.get_mut(&id).filter(|lease| lease.renew_at.is_some());
        let Some(lease) = lease.filter(|_| !self.is_shut_down()) else { return false };
        lease.hold = hold.clone();
        true
    }

    /// Whether no task has seen this lease yet.
    pub(super) fn has(&self, id: u64) -> bool {
        self.shard_of(id).leases.contains_key(&id)
    }

    /// Forgets a hold that was given back; false if the tasks have seen it.
    pub(super) fn forget(&self, id: u64) -> bool {
        let lease = self.shard_of(id).leases.remove(&id);
        lease.is_some()
    }

    /// Takes all of them, in the order in which each thread put them down.
    pub(super) fn take(&self) -> Vec<Lease> {
        let mut all = Vec::new();
        let mut used = self.used.swap(0, Ordering::SeqCst);
        while used != 0 {
            let place = used.trailing_zeros() as usize;
            all.extend(self.shard(place).leases.drain().map(|(_, lease)| lease));
            used &= used - 1;
        }
        all.sort_unstable_by_key(|lease| lease.id);
        all
    }

    /// A task looks at what is due: from here on, each new lease wakes it.
    pub(super) fn looks(&self) {
        self.asleep_until.store(u64::MAX, Ordering::SeqCst);
    }

    /// It has seen all that was put down before it looked, and sleeps until then.
    pub(super) fn sleeps(&self, until: Option<Instant>) {
        let until = until.map_or(u64::MAX, |until| self.after_made(until));
        self.asleep_until.store(until, Ordering::SeqCst);
    }

    /// Nothing more is granted: what is watched from here on is notified at once.
    pub(super) fn shut_down(&self) {
        self.shut_down.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::SeqCst)
    }

    /// Something is put down in this part, which is locked: who takes what is there sees that or waits.
    fn mark_used(&self, place: usize) {
        let bit = 1 << place;
        // Mostly it is set, and then no thread takes the line from the others.
        if self.used.load(Ordering::SeqCst) & bit == 0 {
            self.used.fetch_or(bit, Ordering::SeqCst);
        }
    }

    fn after_made(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.made).as_nanos();
        // Later than any clock shows, it still is a time.
        u64::try_from(after).unwrap_or(u64::MAX).min(u64::MAX - 1)
    }

    fn shard_of(&self, id: u64) -> MutexGuard<'_, Shard> {
        // The remainder fits.
        self.shard((id % SHARDS as u64) as usize)
    }

    fn shard(&self, place: usize) -> MutexGuard<'_, Shard> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where this thread puts leases down.
pub(super) fn place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    // A thread that ends may have no place any more.
    PLACE.try_with(|place| *place).unwrap_or_default()
}

#[cfg(test)]
mod tests;
