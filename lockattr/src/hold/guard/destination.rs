//! Where a released lock goes: to the next waiter of this process, or back to the store.

use std::sync::Arc;

use tokio::time::Instant;

use super::LockGuard;
use super::held::HeldLease;
use super::reader_group::ReaderGroup;
use crate::hold::last_known::{Head, SelectedWaiter};
use crate::lease::validity;
use crate::lock::options::ResolvedOptions;
use crate::queue::Next;
use crate::store::Sharing;
use crate::{FencingToken, LostReason};

#[derive(Default)]
pub(super) enum Destination {
    #[default]
    Store,
    /// To the next waiter of this process, or to several readers, from the head of the queue.
    NextWaiter(Head),
    /// Nowhere while other readers still hold it: the last of them owns the lease.
    Readers(Arc<ReaderGroup>),
    /// A permit: to a waiter of this process, under the next number of the counter. The process
    /// knows that number while it has all permits; otherwise the release [requests
    /// it](HeldLease::request_next_token) first.
    Permit(Option<Number>),
}

/// The fencing number under which a permit is handed off.
pub(super) struct Number {
    fencing: FencingToken,
    /// Only a waiter with a smaller queue number may get it: one that waited before the fencing
    /// number was requested.
    before: u64,
}

impl HeldLease {
    /// Hands the lock to the next waiter of this process, or caches it for the next call. Returns
    /// what has to go back to the store.
    pub(super) fn pass_on(self: Box<Self>, now: Instant) -> Option<Box<Self>> {
        let held = self.hand_on(now)?;
        if matches!(held.claim().sharing(), Sharing::Permits(_)) {
            held.frame.core().permits().goes(held.id, held.claim().key().name());
        }
        Some(held)
    }

    fn hand_on(self: Box<Self>, now: Instant) -> Option<Box<Self>> {
        let mut held = self.leave()?;
        if !held.is_held(now) || held.stays(now).is_some() {
            held.destination = Destination::Store;
            return Some(held);
        }
        loop {
            match std::mem::take(&mut held.destination) {
                Destination::Store | Destination::Readers(_) => return Some(held),
                Destination::Permit(number) => {
                    let number = number.or_else(|| held.number_of_all(now));
                    let Some(number) = number else { return Some(held) };
                    let Some(waiter) = held.next_permit_waiter(&number, now) else {
                        return Some(held);
                    };
                    let guard = held.permit_guard(waiter.wants(), &number, now);
                    let Err(guard) = waiter.hand(guard) else { return None };
                    // That waiter is gone. A requested number is used up with it.
                    held = guard.into_held()?;
                }
                Destination::NextWaiter(head) => match head
                    .next(now, |options| held.fits(options, now))
                {
                    Next::Hand(waiter) if waiter.wants().sharing == Sharing::Shared => {
                        let (readers, guard) = ReaderGroup::begin(held, waiter.wants(), head, now);
                        match waiter.hand(guard) {
                            Ok(()) => return readers.let_in_more(now)?.pass_on(now),
                            Err(guard) => held = guard.into_held()?,
                        }
                    }
                    Next::Hand(waiter) => {
                        let guard = held.hand_off(waiter.wants(), head, now);
                        let Err(guard) = waiter.hand(guard) else { return None };
                        // That waiter is gone; the lock may suit the next one.
                        held = guard.into_held()?;
                    }
                    Next::Store { contended: true } => return Some(held),
                    Next::Store { contended: false } => return held.cache(head, now),
                },
            }
        }
    }

    /// Requests a number from the store if a waiter of this process can have this permit. The
    /// holder has to stop first, so that the number is greater than those of all earlier grants.
    pub(super) async fn request_next_token(&mut self) {
        let now = Instant::now();
        if !self.is_held(now) || self.stays(now).is_some() || self.knows_number(now) {
            return;
        }
        let (core, key) = (self.frame.core().clone(), self.claim().key().clone());
        let fits = |options: &ResolvedOptions| self.fits_permit(options, now);
        let Some(before) = core.askers().may_pass_head(key.name(), now, fits) else { return };
        // Without a number, the permit goes back to the store.
        if let Ok(Some(fencing)) = core.store().next_token(&key).await {
            self.destination = Destination::Permit(Some(Number { fencing, before }));
        }
    }

    fn knows_number(&self, now: Instant) -> bool {
        let (claim, core) = (self.claim(), self.frame.core());
        core.permits().knows_next(claim.key().name(), claim.sharing(), now)
    }

    /// The next number of the counter, if this process has all permits.
    fn number_of_all(&self, now: Instant) -> Option<Number> {
        let (claim, core) = (self.claim(), self.frame.core());
        let (name, fits) =
            (claim.key().name(), |options: &ResolvedOptions| self.fits_permit(options, now));
        // Select the waiters before taking the number: a caller that comes later may follow a
        // greater number of another process.
        let before = core.askers().may_pass_head(name, now, fits)?;
        let fencing = core.permits().next(name, claim.sharing(), now)?;
        Some(Number { fencing, before })
    }

    fn next_permit_waiter(&self, number: &Number, now: Instant) -> Option<SelectedWaiter> {
        let (askers, key) = (self.frame.core().askers(), self.claim().key());
        let fits = |options: &ResolvedOptions| self.fits_permit(options, now);
        askers.pass(key.name(), number.before, now, fits)
    }

    /// Whether a caller that wants a permit with these options can have this one.
    fn fits_permit(&self, options: &ResolvedOptions, now: Instant) -> bool {
        options.sharing == self.claim().sharing() && self.suits(options, now)
    }

    fn permit_guard(
        self: Box<Self>,
        options: &ResolvedOptions,
        number: &Number,
        now: Instant,
    ) -> LockGuard {
        let next = self.next_hold(number.fencing, options.ttl, options.max_hold, now);
        next.frame.core().permits().came(next.id, next.frame.hold());
        next.guard(options, Destination::Permit(None))
    }

    /// Ends the hold of one of several readers. Returns the lease to the last of them.
    pub(super) fn leave(self: Box<Self>) -> Option<Box<Self>> {
        let Destination::Readers(readers) = &self.destination else { return Some(self) };
        self.frame.hold().end(LostReason::Released);
        readers.clone().leave()
    }

    /// Caches the lock in this process, if that is enabled and no caller waits for it.
    fn cache(self: Box<Self>, head: Head, now: Instant) -> Option<Box<Self>> {
        let Some(fencing) = self.last.handed_off() else { return Some(self) };
        let Some(until) = self.frame.core().watchdog.cache_until(self.claim().key().name(), now)
        else {
            return Some(self);
        };
        // The hold ends for its holder; the next one is ready in the cache.
        let ttl = self.frame.hold().ttl();
        let kept = self.next_hold(fencing, ttl, None, now).into_guard();
        head.cache(kept, until).err().and_then(LockGuard::into_held)
    }

    /// Whether a writer or reader with these options can have the lock without a request to the
    /// store.
    fn fits(&self, options: &ResolvedOptions, now: Instant) -> bool {
        match options.sharing {
            Sharing::Exclusive => self.fits_alone(options, now),
            // A limit of a single reader cannot be kept under the lease that all readers share.
            Sharing::Shared => {
                let can_share = self.frame.core().store().supports_downgrade();
                let of_its_own = options.max_hold.is_some() || options.hold_at_least.is_some();
                can_share && !of_its_own && self.lasts_for(options, now)
            }
            Sharing::Permits(_) => false,
        }
    }

    /// Whether a caller with these options can have the lock exclusively without a request to the
    /// store.
    pub(super) fn fits_alone(&self, options: &ResolvedOptions, now: Instant) -> bool {
        options.sharing == Sharing::Exclusive && self.lasts_for(options, now)
    }

    /// Whether these options [suit](Self::suits) and a number is left for the next hold.
    pub(super) fn lasts_for(&self, options: &ResolvedOptions, now: Instant) -> bool {
        self.suits(options, now) && self.last.handed_off().is_some()
    }

    /// Whether the remaining time is at least half of the requested TTL and no more than all of it.
    fn suits(&self, options: &ResolvedOptions, now: Instant) -> bool {
        let left = self.frame.hold().valid_until().saturating_duration_since(now);
        options.renew && left >= validity(options.ttl) / 2 && left <= options.ttl
    }

    /// The guard of the next hold of the same lease; call only if it [fits](Self::fits_alone).
    pub(super) fn hand_off(
        self: Box<Self>,
        options: &ResolvedOptions,
        head: Head,
        now: Instant,
    ) -> LockGuard {
        // It fits, so a number is left.
        let fencing = self.last.handed_off().unwrap_or(self.last);
        self.next_hold(fencing, options.ttl, options.max_hold, now)
            .guard(options, Destination::NextWaiter(head))
    }
}
