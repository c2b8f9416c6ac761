//! The destination of a released lock: the next waiter of this process, or the store.

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
    /// A permit: to a waiter of this process, under the next fencing token. The process knows that
    /// token while it has all permits; otherwise the release [requests
    /// it](HeldLease::request_next_token) first.
    Permit(Option<ReservedToken>),
}

/// The fencing token under which a permit is handed off.
pub(super) struct ReservedToken {
    fencing: FencingToken,
    /// Only a waiter with a smaller id may get it: one that waited before the token was requested.
    before: u64,
}

impl HeldLease {
    /// Hands the lock to the next waiter of this process, or caches it for the next call. Returns
    /// what has to be released to the store.
    pub(super) fn pass_on(self: Box<Self>, now: Instant) -> Option<Box<Self>> {
        let held = self.pass_on_lock(now)?;
        if matches!(held.claim().sharing(), Sharing::Permits(_)) {
            held.frame.core().permits().remove(held.id, held.claim().key().name());
        }
        Some(held)
    }

    fn pass_on_lock(self: Box<Self>, now: Instant) -> Option<Box<Self>> {
        let mut held = self.leave()?;
        if !held.is_held(now) || held.remaining_hold(now).is_some() {
            held.destination = Destination::Store;
            return Some(held);
        }
        loop {
            match std::mem::take(&mut held.destination) {
                Destination::Store | Destination::Readers(_) => return Some(held),
                Destination::Permit(token) => {
                    let token = token.or_else(|| held.local_token(now));
                    let Some(token) = token else { return Some(held) };
                    let Some(waiter) = held.next_permit_waiter(&token, now) else {
                        return Some(held);
                    };
                    let guard = held.permit_guard(waiter.wants(), &token, now);
                    let Err(guard) = waiter.hand_off(guard) else { return None };
                    // That waiter is gone. A requested token is used up with it.
                    held = guard.into_held()?;
                }
                Destination::NextWaiter(head) => match head
                    .next(now, |options| held.fits(options, now))
                {
                    Next::Waiter(waiter) if waiter.wants().sharing == Sharing::Shared => {
                        held.watch_for_waiters(held.frame.hold().valid_until());
                        let (readers, guard) = ReaderGroup::begin(held, waiter.wants(), head, now);
                        match waiter.hand_off(guard) {
                            Ok(()) => return readers.admit_more(now)?.pass_on(now),
                            Err(guard) => held = guard.into_held()?,
                        }
                    }
                    Next::Waiter(waiter) => {
                        held.watch_for_waiters(held.frame.hold().valid_until());
                        let guard = held.hand_off(waiter.wants(), head, now);
                        let Err(guard) = waiter.hand_off(guard) else { return None };
                        // That waiter is gone; the lock may suit the next one.
                        held = guard.into_held()?;
                    }
                    Next::Store { contended: true } => return Some(held),
                    Next::Store { contended: false } => return held.cache(head, now),
                },
            }
        }
    }

    /// Requests a token from the store if a waiter of this process can have this permit. The holder
    /// has to stop first, so that the token is greater than those of all earlier grants.
    pub(super) async fn request_next_token(&mut self) {
        let now = Instant::now();
        if !self.is_held(now) || self.remaining_hold(now).is_some() || self.knows_next_token(now) {
            return;
        }
        let (core, key) = (self.frame.core().clone(), self.claim().key().clone());
        let fits = |options: &ResolvedOptions| self.fits_permit(options, now);
        let Some(before) = core.shared_queues().may_bypass_head(key.name(), now, fits) else {
            return;
        };
        // Without a token, the permit is released to the store.
        if let Ok(Some(fencing)) = core.store().next_token(&key).await {
            self.destination = Destination::Permit(Some(ReservedToken { fencing, before }));
        }
    }

    fn knows_next_token(&self, now: Instant) -> bool {
        let (claim, core) = (self.claim(), self.frame.core());
        core.permits().knows_next(claim.key().name(), claim.sharing(), now)
    }

    /// The next token, if this process has all permits.
    fn local_token(&self, now: Instant) -> Option<ReservedToken> {
        let (claim, core) = (self.claim(), self.frame.core());
        let (name, fits) =
            (claim.key().name(), |options: &ResolvedOptions| self.fits_permit(options, now));
        // The waiters are selected before the token is taken: a caller that arrives later may
        // follow a greater token of another process.
        let before = core.shared_queues().may_bypass_head(name, now, fits)?;
        let fencing = core.permits().next(name, claim.sharing(), now)?;
        Some(ReservedToken { fencing, before })
    }

    fn next_permit_waiter(&self, token: &ReservedToken, now: Instant) -> Option<SelectedWaiter> {
        let (shared_queues, key) = (self.frame.core().shared_queues(), self.claim().key());
        let fits = |options: &ResolvedOptions| self.fits_permit(options, now);
        shared_queues.bypass_head(key.name(), token.before, now, fits)
    }

    /// Whether a caller that wants a permit with these options can have this one.
    fn fits_permit(&self, options: &ResolvedOptions, now: Instant) -> bool {
        options.sharing == self.claim().sharing() && self.suits(options, now)
    }

    fn permit_guard(
        self: Box<Self>,
        options: &ResolvedOptions,
        token: &ReservedToken,
        now: Instant,
    ) -> LockGuard {
        let next = self.next_hold(token.fencing, options.ttl, options.max_hold, now);
        next.frame.core().permits().add(next.id, next.frame.hold());
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
        let Some(fencing) = self.last_token.handed_off() else { return Some(self) };
        let Some(until) = self.frame.core().watchdog.cache_until(self.claim().key().name(), now)
        else {
            return Some(self);
        };
        self.watch_for_waiters(until);
        // The hold ends for its holder; the next one is ready in the cache.
        let ttl = self.frame.hold().ttl();
        let cached = self.next_hold(fencing, ttl, None, now).into_guard();
        head.cache(cached, until).err().and_then(LockGuard::into_held)
    }

    /// This process keeps the lock. A process elsewhere that waits for it must be noticed.
    fn watch_for_waiters(&self, until: Instant) {
        self.frame.core().store().watch_for_waiters(self.claim(), until);
    }

    /// Whether a writer or reader with these options can have the lock without a request to the
    /// store.
    fn fits(&self, options: &ResolvedOptions, now: Instant) -> bool {
        match options.sharing {
            Sharing::Exclusive => self.fits_exclusive(options, now),
            // A limit of a single reader cannot be kept under the lease that all readers share.
            Sharing::Shared => {
                let can_share = self.frame.core().store().supports_downgrade();
                let has_own_limits = options.max_hold.is_some() || options.hold_at_least.is_some();
                can_share && !has_own_limits && self.lasts_for(options, now)
            }
            Sharing::Permits(_) => false,
        }
    }

    /// Whether a caller with these options can have the lock exclusively without a request to the
    /// store.
    pub(super) fn fits_exclusive(&self, options: &ResolvedOptions, now: Instant) -> bool {
        options.sharing == Sharing::Exclusive && self.lasts_for(options, now)
    }

    /// Whether the lease [suits](Self::suits) these options, and a token is left for the next hold.
    pub(super) fn lasts_for(&self, options: &ResolvedOptions, now: Instant) -> bool {
        self.suits(options, now) && self.last_token.handed_off().is_some()
    }

    /// Whether the remaining time is at least half of the requested TTL and no more than all of it.
    fn suits(&self, options: &ResolvedOptions, now: Instant) -> bool {
        let remaining = self.frame.hold().valid_until().saturating_duration_since(now);
        options.renew && remaining >= validity(options.ttl) / 2 && remaining <= options.ttl
    }

    /// The guard of the next hold of the same lease; call only if it [fits](Self::fits_exclusive).
    pub(super) fn hand_off(
        self: Box<Self>,
        options: &ResolvedOptions,
        head: Head,
        now: Instant,
    ) -> LockGuard {
        // It fits, so a token is left.
        let fencing = self.last_token.handed_off().unwrap_or(self.last_token);
        self.next_hold(fencing, options.ttl, options.max_hold, now)
            .guard(options, Destination::NextWaiter(head))
    }
}
