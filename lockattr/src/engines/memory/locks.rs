//! Holders and waiters, in memory. No clock of its own.
//!
//! The rules are those of the Redis scripts (`redis/queue.lua`), so that a test on the memory store
//! says something about both.

#[cfg(feature = "testing")]
mod test_control;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Notifier;
use crate::lock::century::at_most_a_century;
use crate::lock::fencing::{FARTHEST_HINT, clock};
use crate::platform::sync::NameHasher;
use crate::store::queue::{entry_lifetime, lease_of, recheck_after};
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, Grant, LockKey, MAX_RECHECK, Notification,
    ReleaseOutcome, ReleaseRequest, RenewOutcome, RenewRequest, Sharing, Waiting,
};
use crate::{FencingToken, HeldLock, Holder, HolderId};

/// How long a claim for several keys may be overtaken while another of its keys is held.
const MAX_OVERTAKEN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Locks {
    by_name: HashMap<Box<str>, Lock, NameHasher>,
    counter: u64,
    /// How many locks may exist before those whose leases have ended are swept out.
    sweep_threshold: usize,
}

/// One lock. A name without a holder or waiter has none.
#[derive(Debug, Default)]
struct Lock {
    /// One holder, or several that share the lock.
    holders: Vec<Held>,
    queue: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Held {
    claim: Arc<Claim>,
    /// The claim's sharing when the lock was last granted or renewed.
    sharing: Sharing,
    ends: Instant,
    fencing: FencingToken,
    /// Whether the claim has marked the lock as done: then it is no longer the claim's.
    done: bool,
}

#[derive(Clone, Debug)]
struct Waiter {
    claim: Arc<Claim>,
    ttl: Duration,
    since: Instant,
    /// When the entry ends, unless its process asks again.
    lasts_until: Instant,
    /// Whether it is only notified to ask again, and then acquires what is free.
    notify_only: bool,
}

impl Locks {
    pub(super) fn acquire(
        &mut self,
        request: &AcquireRequest,
        notifier: &mut Notifier<'_>,
    ) -> AcquireOutcome {
        let AcquireRequest { claim, ttl, waiting, hint, companion, .. } = request;
        let (ttl, queued) = (*ttl, *waiting != Waiting::Not);
        let notify_only = matches!(waiting, Waiting::Told { .. });
        self.sweep(notifier.now);
        self.expire(claim, notifier.now);
        self.remove_expired_waiters(claim.keys(), notifier.now);
        let is_next = self.has_no_waiters(claim)
            || (notify_only && self.has_its_turn(claim, *waiting))
            || companion.as_ref().is_some_and(|companion| self.has(companion));
        if self.has(claim) || (self.admit(claim) && is_next) {
            let mut granted = self.grant(claim, ttl, *hint, notifier.now);
            if claim.sharing() != Sharing::Exclusive {
                // Waiters behind it may share the lock.
                self.serve(claim.keys().to_vec(), None, notifier);
                if let AcquireOutcome::Acquired { contended, .. } = &mut granted {
                    *contended = !self.has_no_waiters(claim);
                }
            }
            return granted;
        }
        if queued {
            self.enqueue(claim, ttl, notify_only, notifier);
        }
        // It may be free for the queue, if its last holder's lease has ended by itself.
        let (granted, served) = self.serve(claim.keys().to_vec(), Some((claim, *hint)), notifier);
        if let Some(granted) = granted {
            return granted;
        }
        if !served && self.admit(claim) && self.has_no_waiters(claim) {
            // All waiters in the queue were gone.
            return self.grant(claim, ttl, *hint, notifier.now);
        }
        let (holder, ends) = (self.holder_of(claim, notifier.now), self.ends(claim.keys()));
        let left = ends.map(|ends| ends - notifier.now);
        // No process frees a lock here without a notification.
        let queued = queued.then(|| recheck_after(ttl, self.ahead_of(claim), left, MAX_RECHECK));
        AcquireOutcome::Held { holder: holder.map(Box::new), queued }
    }

    pub(super) fn renew(
        &mut self,
        renewal: &RenewRequest,
        notifier: &mut Notifier<'_>,
    ) -> RenewOutcome {
        let (claim, now) = (&renewal.claim, notifier.now);
        self.expire(claim, now);
        if !self.has(claim) {
            return RenewOutcome::NotHeld;
        }
        self.set_end(claim, |ends| ends.max(now + renewal.ttl));
        self.counter = self.counter.max(renewal.fence.map_or(0, FencingToken::counter));
        if self.downgrade(claim) {
            // Waiters may share it too.
            let _served = self.serve(claim.keys().to_vec(), None, notifier);
        }
        RenewOutcome::Renewed
    }

    /// Makes the lock a shared one if the claim has become shared. Returns whether it has.
    fn downgrade(&mut self, claim: &Claim) -> bool {
        let lock = self.by_name.get_mut(claim.key().name());
        let held = lock.and_then(|lock| lock.holders.iter_mut().find(|held| held.is(claim)));
        held.is_some_and(|held| {
            std::mem::replace(&mut held.sharing, claim.sharing()) != claim.sharing()
        })
    }

    pub(super) fn release(
        &mut self,
        release: &ReleaseRequest,
        notifier: &mut Notifier<'_>,
    ) -> ReleaseOutcome {
        let claim = &release.claim;
        self.expire(claim, notifier.now);
        let held = self.has(claim);
        if held && !release.after.is_zero() {
            self.set_end(claim, |_| notifier.now + release.after);
            // The heads of the queues expect another end.
            for key in claim.keys() {
                if let Some(head) = self.waiter(key, 0) {
                    let _there = notifier
                        .notify(&head.claim, Notification::AskAgain(notifier.now + release.after));
                }
            }
            return ReleaseOutcome::Released;
        }
        for key in claim.keys() {
            if let Some(lock) = self.by_name.get_mut(key.name()) {
                lock.holders.retain(|held| !held.is(claim));
            }
        }
        if release.quietly {
            return if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld };
        }
        self.dequeue(claim);
        let _served = self.serve(claim.keys().to_vec(), None, notifier);
        if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld }
    }

    pub(super) fn mark_done(
        &mut self,
        claim: &Claim,
        lasts: Duration,
        notifier: &mut Notifier<'_>,
    ) -> ReleaseOutcome {
        self.expire(claim, notifier.now);
        let Some(lock) = self.by_name.get_mut(claim.key().name()) else {
            return ReleaseOutcome::NotHeld;
        };
        let Some(held) = lock.holders.iter_mut().find(|held| held.was_granted_to(claim)) else {
            return ReleaseOutcome::NotHeld;
        };
        if !held.done {
            (held.done, held.ends) = (true, notifier.now + at_most_a_century(lasts));
            for waiter in &lock.queue {
                // One whose manager is gone needs no notification.
                let _delivered =
                    notifier.notify(&waiter.claim, Notification::AskAgain(notifier.now));
            }
        }
        ReleaseOutcome::Released
    }

    pub(super) fn holder(&self, key: &LockKey, now: Instant) -> Option<Holder> {
        let held = self.by_name.get(key.name())?.holders.iter().find(|held| held.ends > now)?;
        Some(held.label(now))
    }

    pub(super) fn held_locks(&self, prefix: &str, now: Instant) -> Vec<HeldLock> {
        let shown = |name: &str, lock: &Lock| {
            let key = name.strip_prefix(prefix).filter(|key| !key.is_empty())?;
            let held = lock.holders.iter().filter(|held| held.ends > now);
            let first = held.clone().min_by_key(|held| held.ends)?;
            let mut report = HeldLock::new(key, first.label(now));
            report.holders = u32::try_from(held.count()).unwrap_or(u32::MAX);
            report.shared = first.sharing != Sharing::Exclusive;
            report.waiting = u64::try_from(lock.queue.len()).unwrap_or(u64::MAX);
            report.fencing_token = Some(first.fencing);
            Some(report)
        };
        self.by_name.iter().filter_map(|(name, lock)| shown(name, lock)).collect()
    }

    pub(super) fn force_release(
        &mut self,
        key: &LockKey,
        holder: HolderId,
        notifier: &mut Notifier<'_>,
    ) -> bool {
        let now = notifier.now;
        let Some(lock) = self.by_name.get_mut(key.name()) else { return false };
        let released = lock.holders.extract_if(.., |held| held.label(now).id == holder);
        let was_held = released.fold(false, |was_held, held| was_held | (held.ends > now));
        let _served = self.serve(vec![key.clone()], None, notifier);
        was_held
    }

    /// Hands the locks to the next waiters, past claims whose manager is gone. A waiter that is
    /// only notified must ask again to acquire. If `requester` is among them, returns its grant, by
    /// its hint, instead of notifying it. Also returns whether any waiter was served.
    fn serve(
        &mut self,
        mut keys: Vec<LockKey>,
        requester: Option<(&Arc<Claim>, Option<u64>)>,
        notifier: &mut Notifier<'_>,
    ) -> (Option<AcquireOutcome>, bool) {
        let (mut granted, mut served) = (None, false);
        while let Some(key) = keys.pop() {
            self.remove_expired_waiters(std::slice::from_ref(&key), notifier.now);
            let mut overtaken = 0;
            while let Some(waiter) = self.waiter(&key, overtaken) {
                self.expire(&waiter.claim, notifier.now);
                if !self.admit(&waiter.claim) || !self.is_first_everywhere(&waiter, notifier.now) {
                    let several = waiter.claim.keys().len() > 1;
                    let is_new = notifier.now < waiter.since + MAX_OVERTAKEN;
                    if several && is_new && self.admits(&key, waiter.claim.sharing()) {
                        // It waits for another key, so the next waiter may have this one.
                        overtaken += 1;
                        continue;
                    }
                    break;
                }
                self.dequeue(&waiter.claim);
                let requester = requester.filter(|(claim, _)| waiter.is(claim));
                if let Some((claim, hint)) = requester {
                    granted = Some(self.grant(claim, waiter.ttl, hint, notifier.now));
                    served = true;
                } else if waiter.notify_only {
                    let delivered =
                        notifier.notify(&waiter.claim, Notification::AskAgain(notifier.now));
                    served |= delivered;
                    // Waiters behind it must wait for it, except those that can share with it.
                    if delivered && waiter.claim.sharing() != Sharing::Shared {
                        break;
                    }
                } else {
                    let handed_off = self.hand_off(&waiter, notifier);
                    served |= handed_off;
                    // Others may share its other locks, or be next there in its place.
                    if !handed_off || waiter.claim.sharing() != Sharing::Exclusive {
                        keys.extend(
                            waiter.claim.keys().iter().filter(|other| **other != key).cloned(),
                        );
                    }
                }
            }
            self.forget_if_unused(&key);
        }
        (granted, served)
    }

    /// Whether a claim comes next in the queues of all its keys, not counting claims for several
    /// keys that may be overtaken.
    fn is_first_everywhere(&self, waiter: &Waiter, now: Instant) -> bool {
        let locks = waiter.claim.keys().iter().filter_map(|key| self.by_name.get(key.name()));
        locks.into_iter().all(|lock| {
            let mut before = lock.queue.iter().take_while(|before| !before.is(&waiter.claim));
            before.all(|before| {
                let passable = before.claim.keys().len() > 1 && now < before.since + MAX_OVERTAKEN;
                before.lasts_until <= now || (passable && !self.admit(&before.claim))
            })
        })
    }

    /// Hands the lock to a queued claim; `false` if its manager is gone.
    fn hand_off(&mut self, waiter: &Waiter, notifier: &mut Notifier<'_>) -> bool {
        let fencing = self.next_token(None);
        let left = waiter.lasts_until.saturating_duration_since(notifier.now);
        let lease = lease_of(waiter.ttl, entry_lifetime(waiter.ttl).saturating_sub(left));
        let since = notifier.now.checked_sub(waiter.ttl - lease).unwrap_or(notifier.now);
        let grant = Grant::new(fencing, since, !self.has_no_waiters(&waiter.claim));
        let delivered = notifier.notify(&waiter.claim, Notification::Granted(grant));
        if delivered {
            self.hold(&waiter.claim, notifier.now + lease, fencing);
        }
        delivered
    }

    fn grant(
        &mut self,
        claim: &Arc<Claim>,
        ttl: Duration,
        hint: Option<u64>,
        now: Instant,
    ) -> AcquireOutcome {
        self.dequeue(claim);
        let fencing = self.next_token(hint);
        self.hold(claim, now + ttl, fencing);
        AcquireOutcome::Acquired { fencing, contended: !self.has_no_waiters(claim) }
    }

    pub(super) fn next_token(&mut self, hint: Option<u64>) -> FencingToken {
        let clock = clock();
        let farthest = clock.max(self.counter).saturating_add(FARTHEST_HINT);
        let hint = hint.filter(|hint| *hint <= farthest);
        self.counter = hint.unwrap_or(clock).max(self.counter + 1);
        FencingToken::from_counter(self.counter)
    }

    fn hold(&mut self, claim: &Arc<Claim>, ends: Instant, fencing: FencingToken) {
        for key in claim.keys() {
            let lock = self.by_name.entry(key.name().into()).or_default();
            lock.holders.retain(|held| held.claim.token() != claim.token());
            let sharing = claim.sharing();
            let claim = claim.clone();
            lock.holders.push(Held { claim, sharing, ends, fencing, done: false });
        }
    }

    fn enqueue(
        &mut self,
        claim: &Arc<Claim>,
        ttl: Duration,
        notify_only: bool,
        notifier: &mut Notifier<'_>,
    ) {
        for key in claim.keys() {
            let lock = self.by_name.entry(key.name().into()).or_default();
            let lasts_until = notifier.now + entry_lifetime(ttl);
            if let Some(waiter) = lock.queue.iter_mut().find(|waiter| waiter.is(claim)) {
                waiter.lasts_until = lasts_until;
                continue;
            }
            let claim = claim.clone();
            lock.queue.push_back(Waiter {
                claim,
                ttl,
                since: notifier.now,
                lasts_until,
                notify_only,
            });
            for held in lock.holders.iter().filter(|held| !held.done) {
                notifier.notify_contended(&held.claim, key.name());
            }
        }
    }

    /// Removes the entries of processes that did not ask again in time: killed, stopped or cut off.
    fn remove_expired_waiters(&mut self, keys: &[LockKey], now: Instant) {
        for key in keys {
            if let Some(lock) = self.by_name.get_mut(key.name()) {
                lock.queue.retain(|waiter| waiter.lasts_until > now);
            }
        }
    }

    /// How many claims wait before this one for the lock that blocks it.
    fn ahead_of(&self, claim: &Claim) -> u32 {
        let blocks = |key: &&LockKey| !self.admits(key, claim.sharing());
        let key = claim.keys().iter().find(blocks).unwrap_or(claim.key());
        let lock = self.by_name.get(key.name());
        let ahead = lock.and_then(|lock| lock.queue.iter().position(|waiter| waiter.is(claim)));
        ahead.and_then(|ahead| u32::try_from(ahead).ok()).unwrap_or_default()
    }

    fn dequeue(&mut self, claim: &Claim) {
        for key in claim.keys() {
            if let Some(lock) = self.by_name.get_mut(key.name()) {
                lock.queue.retain(|waiter| !waiter.is(claim));
            }
        }
    }

    /// Whether the holders let the claim have all its locks now. Ignores the queues.
    fn admit(&self, claim: &Claim) -> bool {
        claim.keys().iter().all(|key| self.admits(key, claim.sharing()))
    }

    fn admits(&self, key: &LockKey, sharing: Sharing) -> bool {
        let holders = self.by_name.get(key.name()).map_or(&[][..], |lock| &lock.holders);
        holders.is_empty()
            || match sharing {
                Sharing::Exclusive => false,
                Sharing::Shared => holders.iter().all(|held| held.sharing == Sharing::Shared),
                Sharing::Permits(permits) => {
                    let takes_permits = |held: &Held| matches!(held.sharing, Sharing::Permits(_));
                    // A `u32` fits into a `usize`.
                    holders.iter().all(takes_permits) && holders.len() < permits as usize
                }
            }
    }

    fn has_no_waiters(&self, claim: &Claim) -> bool {
        let locks = claim.keys().iter().filter_map(|key| self.by_name.get(key.name()));
        locks.flat_map(|lock| &lock.queue).next().is_none()
    }

    /// Whether a claim that is only notified comes before all queued claims. Once notified, it is
    /// no longer in the queue.
    fn has_its_turn(&self, claim: &Claim, waiting: Waiting) -> bool {
        claim.keys().iter().all(|key| {
            let Some(lock) = self.by_name.get(key.name()) else { return true };
            let rank = lock.queue.iter().position(|other| other.is(claim));
            rank == Some(0)
                || lock.queue.is_empty()
                || (rank.is_none() && waiting == Waiting::Told { again: true })
        })
    }

    fn has(&self, claim: &Claim) -> bool {
        claim.keys().iter().all(|key| {
            let lock = self.by_name.get(key.name());
            lock.is_some_and(|lock| lock.holders.iter().any(|held| held.is(claim)))
        })
    }

    /// Changes the end of a claim's lease.
    fn set_end(&mut self, claim: &Claim, change: impl Fn(Instant) -> Instant) {
        for key in claim.keys() {
            let lock = self.by_name.get_mut(key.name());
            let holders = lock.into_iter().flat_map(|lock| &mut lock.holders);
            holders.filter(|held| held.is(claim)).for_each(|held| held.ends = change(held.ends));
        }
    }

    fn waiter(&self, key: &LockKey, nth: usize) -> Option<Waiter> {
        self.by_name.get(key.name())?.queue.get(nth).cloned()
    }

    /// Returns the holder that blocks the claim.
    fn holder_of(&self, claim: &Claim, now: Instant) -> Option<Holder> {
        self.holders(claim.keys()).next().map(|held| held.label(now))
    }

    /// When the first of the blocking leases ends, if none is renewed.
    fn ends(&self, keys: &[LockKey]) -> Option<Instant> {
        self.holders(keys).map(|held| held.ends).min()
    }

    fn holders(&self, keys: &[LockKey]) -> impl Iterator<Item = &Held> {
        let locks = keys.iter().filter_map(|key| self.by_name.get(key.name()));
        locks.flat_map(|lock| &lock.holders)
    }

    fn expire(&mut self, claim: &Claim, now: Instant) {
        for key in claim.keys() {
            if let Some(lock) = self.by_name.get_mut(key.name()) {
                lock.holders.retain(|held| held.ends > now);
            }
        }
    }

    fn forget_if_unused(&mut self, key: &LockKey) {
        if self.by_name.get(key.name()).is_some_and(Lock::is_unused) {
            self.by_name.remove(key.name());
        }
    }

    /// Sweeps out leases that no process released, whenever the number of locks has doubled.
    fn sweep(&mut self, now: Instant) {
        if self.by_name.len() >= self.sweep_threshold.max(64) {
            self.by_name.retain(|_, lock| {
                lock.holders.retain(|held| held.ends > now);
                !lock.is_unused()
            });
            self.sweep_threshold = self.by_name.len() * 2;
        }
    }
}

impl Lock {
    fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }
}

impl Waiter {
    fn is(&self, claim: &Claim) -> bool {
        self.claim.queued_as().token() == claim.queued_as().token()
    }
}

impl Held {
    /// Whether the claim holds it.
    fn is(&self, claim: &Claim) -> bool {
        !self.done && self.was_granted_to(claim)
    }

    fn was_granted_to(&self, claim: &Claim) -> bool {
        self.claim.token() == claim.token()
    }

    fn label(&self, now: Instant) -> Holder {
        let left = Some(self.ends.saturating_duration_since(now));
        // As the other stores write it.
        let done = self.done.then(|| [self.claim.value(), " done=1"].concat());
        Holder::from_value(done.as_deref().unwrap_or(self.claim.value()), left)
    }
}
