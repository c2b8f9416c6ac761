//! What a guard owns: the lock, which is released to the store once, or [handed
//! off](super::destination) to the next waiter.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::destination::Destination;
use super::{LockGuard, Ownership};
use crate::hold::chain::Frame;
use crate::hold::core::Core;
use crate::hold::last_known::Head;
use crate::lease::{GrantedLease, LeaseState};
use crate::lock::options::ResolvedOptions;
use crate::store::{self, Claim, ReleaseRequest, Sharing};
use crate::{Error, FencingToken, Lease, LostReason};

/// The lock, released explicitly or by drop; `None` afterwards.
///
/// Boxed to keep the guard of a nested call, which has no lease of its own, small.
pub(super) struct OwnedLease(pub(super) Option<Box<HeldLease>>);

pub(super) struct HeldLease {
    /// The watchdog's id of the lease.
    pub(super) id: u64,
    pub(super) frame: Arc<Frame>,
    /// What happens to the lock when its holder releases it.
    pub(super) destination: Destination,
    /// The greatest fencing token given under this lease.
    pub(super) last_token: FencingToken,
    /// The least time that the lock stays held after its body began, whichever process releases it.
    pub(super) at_least: Option<Duration>,
}

impl OwnedLease {
    /// In a fork of the process that holds the lock: leaves the lock there, untouched. Its mutexes
    /// may have been locked by a thread that does not exist here to unlock them.
    fn leave_to_parent(&mut self) {
        if let Some(held) = self.0.take_if(|held| !held.frame.hold().is_of_this_process()) {
            mem::forget(held);
        }
    }

    /// Hands the lock to the next waiter of this process, or releases it in the store and waits for
    /// the answer.
    pub(super) async fn release(&mut self) -> Result<(), Error> {
        self.leave_to_parent();
        if let Some(held) = &mut self.0
            && matches!(held.destination, Destination::Permit(_))
        {
            // Boxed, or every release would reserve the space for this future.
            Box::pin(held.request_next_token()).await;
        }
        let now = Instant::now();
        let Some(held) = self.0.take().and_then(|held| held.pass_on(now)) else { return Ok(()) };
        // Until the answer arrives, dropping this future must still release the lock.
        let held = self.0.insert(held);
        let hold = held.frame.hold().clone();
        held.report_loss();
        let releases = [held.release_request(now)];
        hold.lose(LostReason::Released);
        let answer = held.frame.core().store().release(&releases).await.pop();
        let count = |outcome| held.frame.core().watchdog.telemetry().release(outcome);
        match answer {
            Some(Ok(store::ReleaseOutcome::Released)) => {
                count("released");
                self.settle();
                Ok(())
            }
            Some(Ok(store::ReleaseOutcome::NotHeld)) | None => {
                count("not_held");
                held.frame.core().watchdog.report_lost(&hold, LostReason::Taken);
                self.settle();
                Err(hold.lost(LostReason::Taken))
            }
            // Dropping `self` keeps trying.
            Some(Err(error)) => {
                count("unknown");
                Err(error.about(&hold.claim().named()))
            }
        }
    }

    /// The same, but returns when the store's client has the release. Returns whether the client
    /// waits for the answer.
    pub(super) async fn release_in_background(&mut self) -> bool {
        self.leave_to_parent();
        let now = Instant::now();
        let Some(held) = self.0.take().and_then(|held| held.pass_on(now)) else { return false };
        let held = self.0.insert(held);
        let held_until_now = held.if_held(now);
        held.report_loss();
        let until = held.frame.hold().expires_in_store_at();
        let release = held.release_request(now);
        held.frame.hold().lose(LostReason::Released);
        let watchdog = held.frame.core().watchdog.clone();
        let is_pending = watchdog.release_in_background(release, until, held_until_now).await;
        self.settle();
        is_pending
    }

    /// Ends the release. Only now does the watchdog forget the hold: a shutdown waits until then.
    pub(super) fn settle(&mut self) {
        if let Some(held) = self.0.take() {
            held.frame.core().watchdog.forget(held.id);
        }
    }
}

impl Drop for OwnedLease {
    fn drop(&mut self) {
        self.leave_to_parent();
        let now = Instant::now();
        if let Some(held) = self.0.take().and_then(|held| held.pass_on(now)) {
            let held_until_now = held.if_held(now);
            held.report_loss();
            let until = held.frame.hold().expires_in_store_at();
            let release = held.release_request(now);
            held.frame.hold().lose(LostReason::Released);
            held.frame.core().watchdog.release_later(release, until, held_until_now);
            held.frame.core().watchdog.forget(held.id);
        }
    }
}

impl HeldLease {
    pub(super) fn into_guard(self: Box<Self>) -> LockGuard {
        LockGuard::of(Ownership::Lock(Lease::new(self.frame.clone()), OwnedLease(Some(self))))
    }

    pub(super) fn guard(
        mut self: Box<Self>,
        options: &ResolvedOptions,
        destination: Destination,
    ) -> LockGuard {
        self.destination = destination;
        self.at_least = options.hold_at_least;
        self.into_guard()
    }

    pub(super) fn next_hold(
        mut self: Box<Self>,
        fencing: FencingToken,
        ttl: Duration,
        max_hold: Option<Duration>,
        now: Instant,
    ) -> Box<Self> {
        let (hold, core) = (self.frame.hold(), self.frame.core());
        let next = Arc::new(hold.handed_off(fencing, ttl, max_hold, now));
        hold.lose(LostReason::Released);
        core.watchdog.hand_off(self.id, &next, now);
        self.frame = Arc::new(Frame::first(next, core.clone()));
        (self.destination, self.at_least, self.last_token) = (Destination::Store, None, fencing);
        self
    }

    fn release_request(&self, now: Instant) -> ReleaseRequest {
        ReleaseRequest::new(self.claim().clone())
            .after(self.remaining_hold(now).unwrap_or_default())
    }

    /// The time that the lock has to stay held; `None` if its body never began.
    pub(super) fn remaining_hold(&self, now: Instant) -> Option<Duration> {
        let until = self.frame.began()?.checked_add(self.at_least?)?;
        let left = until.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.frame.hold().check(now).is_ok()
    }

    /// The hold, if it is still held: the store's answer to its release may be that it was lost.
    fn if_held(&self, now: Instant) -> Option<Arc<LeaseState>> {
        self.is_held(now).then(|| self.frame.hold().clone())
    }

    /// Reports a loss that its holder noticed before the watchdog did.
    fn report_loss(&self) {
        if let Some(reason) = self.frame.hold().ended_by() {
            self.frame.core().watchdog.report_lost(self.frame.hold(), reason);
        }
    }

    pub(super) fn claim(&self) -> &Arc<Claim> {
        self.frame.hold().claim()
    }
}

impl LockGuard {
    /// Makes the guard of a lock just granted. Returns it, and whether the watchdog was woken for
    /// it. With `head`, the lock can be handed to other callers of this process; without it, only a
    /// permit can be.
    pub(crate) fn granted(
        granted: GrantedLease,
        hold_at_least: Option<Duration>,
        head: Option<Head>,
        core: &Arc<Core>,
    ) -> (Self, bool) {
        let (requested_at, ttl, last_token) = (granted.requested_at, granted.ttl, granted.fencing);
        let destination = match (head, granted.claim.sharing(), granted.claim.keys()) {
            (Some(head), ..) => Destination::NextWaiter(head),
            (None, Sharing::Permits(_), [_]) => Destination::Permit(None),
            (None, ..) => Destination::Store,
        };
        let hold = Arc::new(LeaseState::new(granted));
        let (id, woken) = core.watchdog.watch(&hold, requested_at, ttl);
        if matches!(destination, Destination::Permit(_)) {
            core.permits().add(id, &hold);
        }
        let frame = Arc::new(Frame::first(hold, core.clone()));
        let held =
            Box::new(HeldLease { id, frame, destination, last_token, at_least: hold_at_least });
        (held.into_guard(), woken)
    }

    /// Hands a cached lock to a caller with these options, or releases it if it does not fit. The
    /// release is sent before the request to the store: otherwise a caller that sends only one
    /// request would find the lock held.
    pub(crate) async fn take_cached_lock(
        self,
        options: &ResolvedOptions,
        head: Head,
    ) -> Result<Self, Head> {
        let now = Instant::now();
        match self.into_held() {
            Some(held) if held.is_held(now) && held.fits_exclusive(options, now) => {
                let is_ready = options.max_hold.is_none() && held.frame.hold().ttl() == options.ttl;
                Ok(match is_ready {
                    true => held.guard(options, Destination::NextWaiter(head)),
                    false => held.hand_off(options, head, now),
                })
            }
            held => {
                OwnedLease(held).release_in_background().await;
                Err(head)
            }
        }
    }

    /// The lock itself, of a guard that a waiter did not accept. `None` if other readers hold it
    /// too.
    pub(super) fn into_held(self) -> Option<Box<HeldLease>> {
        match self.ownership {
            Ownership::Lock(_, mut owned) => owned.0.take()?.leave(),
            Ownership::Reentry(_) => None,
        }
    }
}
