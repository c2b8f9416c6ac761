//! Changes that a test makes to the locks in memory, without their holders.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::MemoryStore;
use super::Locks;
use crate::Holder;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest,
};

impl MemoryStore {
    /// Acquires the lock for the claim, or returns its holder.
    pub(crate) fn take(
        &self,
        claim: &Arc<Claim>,
        ttl: Duration,
    ) -> Result<(), Option<Box<Holder>>> {
        let request = AcquireRequest::new(claim.clone(), ttl);
        match self.with(|locks, notifier| locks.acquire(&request, notifier)) {
            AcquireOutcome::Acquired { .. } => Ok(()),
            AcquireOutcome::Held { holder, .. } => Err(holder),
        }
    }

    /// Releases the claim's lock.
    pub(crate) fn give_back(&self, release: &ReleaseRequest) {
        self.with(|locks, notifier| {
            // If the claim has lost it meanwhile, there is nothing to release.
            locks.release(release, notifier);
        });
    }

    /// Marks the claim's lock as done; `false` if it no longer holds it.
    pub(crate) fn finish(&self, claim: &Claim, time: Duration) -> bool {
        let outcome = self.with(|locks, notifier| locks.mark_done(claim, time, notifier));
        outcome == ReleaseOutcome::Released
    }

    /// Ends the leases on the key, and hands the lock to the next waiter. Returns the former
    /// holders.
    pub(crate) fn end(&self, key: &LockKey) -> Vec<Arc<Claim>> {
        self.with(|locks, notifier| {
            let ended = locks.end(key, notifier.now);
            let keys = ended.iter().flat_map(|claim| claim.keys()).cloned().collect();
            locks.serve(keys, None, notifier);
            ended
        })
    }

    /// Ends the leases on the claim's keys, and grants it those locks, before all waiters.
    pub(crate) fn steal(&self, claim: &Arc<Claim>, ttl: Duration) -> Vec<Arc<Claim>> {
        self.with(|locks, notifier| {
            let ended = claim.keys().iter().flat_map(|key| locks.end(key, notifier.now)).collect();
            locks.grant(claim, ttl, None, notifier.now);
            ended
        })
    }

    /// Returns the holders of the lock, and when their leases end.
    pub(crate) fn holders(&self, key: &LockKey) -> Vec<(Holder, Instant)> {
        self.with(|locks, notifier| locks.holders_at(key.name(), notifier.now))
    }

    /// Returns the names and holders of all held locks.
    pub(crate) fn held(&self) -> Vec<(String, Holder)> {
        self.with(|locks, notifier| {
            let mut held: Vec<_> = locks
                .names()
                .flat_map(|name| {
                    let holders = locks.holders_at(name, notifier.now).into_iter();
                    holders.map(move |(holder, _)| (name.to_owned(), holder))
                })
                .collect();
            held.sort_by(|(one, _), (other, _)| one.cmp(other));
            held
        })
    }

    /// Whether the claim still holds its lock.
    pub(crate) fn is_held_by(&self, claim: &Claim) -> bool {
        self.with(|locks, notifier| {
            locks.expire(claim, notifier.now);
            locks.has(claim)
        })
    }
}

impl Locks {
    /// Takes the lock of this key, and the other locks of the same claims, from all its holders.
    fn end(&mut self, key: &LockKey, now: Instant) -> Vec<Arc<Claim>> {
        let Some(lock) = self.by_name.get_mut(key.name()) else { return Vec::new() };
        let held = lock.holders.iter().filter(|held| held.ends > now);
        let ended: Vec<_> = held.map(|held| held.claim.clone()).collect();
        for key in ended.iter().flat_map(|claim| claim.keys()) {
            if let Some(lock) = self.by_name.get_mut(key.name()) {
                lock.holders.retain(|held| !ended.iter().any(|claim| held.was_granted_to(claim)));
            }
        }
        ended
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }

    fn holders_at(&self, name: &str, now: Instant) -> Vec<(Holder, Instant)> {
        let holders = self.by_name.get(name).map_or(&[][..], |lock| &lock.holders);
        let held = holders.iter().filter(|held| held.ends > now);
        held.map(|held| (held.label(now), held.ends)).collect()
    }
}
