//! Where a lock goes when its holder lets go of it: to the next in this process, or back to the store.

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

/// Where a lock goes.
#[derive(Default)]
pub(super) enum Destination {
    /// Back to the store.
    #[default]
    Store,
    /// To the next of this process, or to several readers, from the place in front.
    NextWaiter(Head),
    /// Nowhere, while other readers have it too: the last of them has the lease itself.
    Readers(Arc<ReaderGroup>),
    /// A permit: to a waiter of this process, under the next number of the counter. The process knows that number
    /// while it has all permits; otherwise the release [asks for it](HeldLease::request_next_token) first.
    Permit(Option<Number>),
}

/// The number under which a permit is handed off.
pub(super) struct Number {
    fencing: FencingToken,
    /// Only a waiter with a smaller place number may get it: one that waited before the number was asked for.
    before: u64,
}

impl HeldLease {
    /// Hands the lock to the next in this process, or keeps it for the next call. What is left
    /// goes back to the store.
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
            // The next one asks the store.
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
                    // That waiter is gone. A number that was asked for is used up with it.
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
                        // That one is gone; it may fit the next.
                        held = guard.into_held()?;
                    }
                    Next::Store { contended: true } => return Some(held),
                    Next::Store { contended: false } => return held.cache(head, now),
                },
            }
        }
    }

    /// Asks the store for a number, if a waiter of this process can have this permit. The holder has to let go
    /// first, so that the number is greater than those of all grants before.
    pub(super) async fn request_next_token(&mut self) {
        let now = Instant::now();
        if !self.is_held(now) || self.stays(now).is_some() || self.knows_number(now) {
            return;
        }
        let (core, key) = (self.frame.core().clone(), self.claim().key().clone());
        let fits = |options: &ResolvedOptions| self.fits_permit(options, now);
        let Some(before) = core.askers().may_pass_head(key.name(), now, fits) else { return };
        // Without one it goes back to the store.
        if let Ok(Some(fencing)) = core.store().next_token(&key).await {
            self.destination = Destination::Permit(Some(Number { fencing, before }));
        }
    }

    fn knows_number(&self, now: Instant) -> bool {
        let (claim, core) = (self.claim(), self.frame.core());
        core.permits().knows_next(claim.key().name(), claim.sharing(), now)
    }

    /// The next number of the counter, if all permits are here.
    fn number_of_all(&self, now: Instant) -> Option<Number> {
        let (claim, core) = (self.claim(), self.frame.core());
        let (name, fits) =
            (claim.key().name(), |options: &ResolvedOptions| self.fits_permit(options, now));
        // Note which process waits before taking the number: by then another process may have a greater number than a later caller.
        let before = core.askers().may_pass_head(name, now, fits)?;
        let fencing = core.permits().next(name, claim.sharing(), now)?;
        Some(Number { fencing, before })
    }

    /// The waiter that gets this permit next.
    fn next_permit_waiter(&self, number: &Number, now: Instant) -> Option<SelectedWaiter> {
        let (askers, key) = (self.frame.core().askers(), self.claim().key());
        let fits = |options: &ResolvedOptions| self.fits_permit(options, now);
        askers.pass(key.name(), number.before, now, fits)
    }

    /// Whether who wants a permit with these options can have this one.
    fn fits_permit(&self, options: &ResolvedOptions, now: Instant) -> bool {
        options.sharing == self.claim().sharing() && self.suits(options, now)
    }

    /// The guard of the next hold of a permit.
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

    /// Ends the hold of one of several readers. The last of them gets the lease itself.
    pub(super) fn leave(self: Box<Self>) -> Option<Box<Self>> {
        let Destination::Readers(readers) = &self.destination else { return Some(self) };
        self.frame.hold().end(LostReason::Released);
        readers.clone().leave()
    }

    /// Keeps the lock in this process for a while, if that is wished and no caller waits for it.
    fn cache(self: Box<Self>, head: Head, now: Instant) -> Option<Box<Self>> {
        let Some(fencing) = self.last.handed_off() else { return Some(self) };
        let Some(until) = self.frame.core().watchdog.cache_until(self.claim().key().name(), now)
        else {
            return Some(self);
        };
        // For its holder it ends here; the next hold lies ready.
        let ttl = self.frame.hold().ttl();
        let kept = self.next_hold(fencing, ttl, None, now).into_guard();
        head.cache(kept, until).err().and_then(LockGuard::into_held)
    }

    /// Whether who wants the lock with these options, alone or to read, can have it without asking the store.
    fn fits(&self, options: &ResolvedOptions, now: Instant) -> bool {
        match options.sharing {
            Sharing::Exclusive => self.fits_alone(options, now),
            // What is one reader's own would have to be kept apart from the lease that all of them have.
            Sharing::Shared => {
                let can_share = self.frame.core().store().supports_downgrade();
                let of_its_own = options.max_hold.is_some() || options.hold_at_least.is_some();
                can_share && !of_its_own && self.lasts_for(options, now)
            }
            Sharing::Permits(_) => false,
        }
    }

    /// Whether who wants the lock alone with these options can have it without asking the store.
    pub(super) fn fits_alone(&self, options: &ResolvedOptions, now: Instant) -> bool {
        options.sharing == Sharing::Exclusive && self.lasts_for(options, now)
    }

    /// Whether these options [suit](Self::suits), and there is a number for the next hold.
    pub(super) fn lasts_for(&self, options: &ResolvedOptions, now: Instant) -> bool {
        self.suits(options, now) && self.last.handed_off().is_some()
    }

    /// Whether at least half of the TTL that these options ask for is left, and no more than all of it.
    fn suits(&self, options: &ResolvedOptions, now: Instant) -> bool {
        let left = self.frame.hold().valid_until().saturating_duration_since(now);
        options.renew && left >= validity(options.ttl) / 2 && left <= options.ttl
    }

    /// The guard of the next hold of the same lease; only if it [fits](Self::fits_alone).
    pub(super) fn hand_off(
        self: Box<Self>,
        options: &ResolvedOptions,
        head: Head,
        now: Instant,
    ) -> LockGuard {
        // It fits, so there is a number left.
        let fencing = self.last.handed_off().unwrap_or(self.last);
        self.next_hold(fencing, options.ttl, options.max_hold, now)
            .guard(options, Destination::NextWaiter(head))
    }
}
