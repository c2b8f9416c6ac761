//! What a guard owns: the lock itself, which goes back to the store once, or [on](super::destination) to the next
//! in the queue.

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
use crate::observe;
use crate::store::{self, Claim, ReleaseRequest, Sharing};
use crate::{Error, FencingToken, Lease, LostReason};

/// The lock, given back by hand or by drop; `None` once it is.
///
/// Boxed, so that the guard of a nested call, which has none, is small.
pub(super) struct OwnedLease(pub(super) Option<Box<HeldLease>>);

/// The lock as this process has it.
pub(super) struct HeldLease {
    /// The watchdog's number of the lease.
    pub(super) id: u64,
    pub(super) frame: Arc<Frame>,
    /// Where it goes when its holder lets go of it.
    pub(super) destination: Destination,
    /// The greatest number that was given under this lease.
    pub(super) last: FencingToken,
    /// For how long it stays taken at least, from when its body began, whichever caller releases it.
    pub(super) at_least: Option<Duration>,
}

impl OwnedLease {
    /// In a fork of the process that has the lock: leaves it there, untouched. What lies around it may
    /// have been locked by a thread that is not here to unlock it.
    fn leave_to_parent(&mut self) {
        if let Some(held) = self.0.take_if(|held| !held.frame.hold().is_of_this_process()) {
            mem::forget(held);
        }
    }

    /// Gives the lock to the next in this process, or back to the store, and waits for the answer.
    pub(super) async fn release(&mut self) -> Result<(), Error> {
        self.leave_to_parent();
        if let Some(held) = &mut self.0
            && matches!(held.destination, Destination::Permit(_))
        {
            // In a box, or every release would carry the room for this.
            Box::pin(held.request_next_token()).await;
        }
        let now = Instant::now();
        let Some(held) = self.0.take().and_then(|held| held.pass_on(now)) else { return Ok(()) };
        // Until the answer is here, dropping this future must still give the lock back.
        let held = self.0.insert(held);
        let hold = held.frame.hold().clone();
        let releases = [held.releasing(now)];
        hold.lose(LostReason::Released);
        let answer = held.frame.core().store().release(&releases).await.pop();
        match answer {
            Some(Ok(store::ReleaseOutcome::Released)) => {
                observe::release("released");
                self.given_back();
                Ok(())
            }
            Some(Ok(store::ReleaseOutcome::NotHeld)) | None => {
                observe::release("not_held");
                self.given_back();
                Err(hold.lost(LostReason::Taken))
            }
            // Dropping `self` goes on trying.
            Some(Err(error)) => {
                observe::release("unknown");
                Err(error.about(&hold.claim().named()))
            }
        }
    }

    /// The same, but only until the store's client has it. Whether it waits for its answer.
    pub(super) async fn release_in_background(&mut self) -> bool {
        self.leave_to_parent();
        let now = Instant::now();
        let Some(held) = self.0.take().and_then(|held| held.pass_on(now)) else { return false };
        let held = self.0.insert(held);
        let (is_held, until) = (held.is_held(now), held.frame.hold().store_lets_go_at());
        let release = held.releasing(now);
        held.frame.hold().lose(LostReason::Released);
        let watchdog = held.frame.core().watchdog.clone();
        let waits = watchdog.release_in_background(release, until, is_held).await;
        self.given_back();
        waits
    }

    /// Nothing more is owed. Only now the watchdog forgets the hold: a shutdown waits until then.
    fn given_back(&mut self) {
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
            let (is_held, until) = (held.is_held(now), held.frame.hold().store_lets_go_at());
            let release = held.releasing(now);
            held.frame.hold().lose(LostReason::Released);
            held.frame.core().watchdog.release_later(release, until, is_held);
            held.frame.core().watchdog.forget(held.id);
        }
    }
}

impl HeldLease {
    pub(super) fn into_guard(self: Box<Self>) -> LockGuard {
        LockGuard::of(Ownership::Lock(Lease::new(self.frame.clone()), OwnedLease(Some(self))))
    }

    /// The guard of this hold, for who begins it now.
    pub(super) fn guard(
        mut self: Box<Self>,
        options: &ResolvedOptions,
        destination: Destination,
    ) -> LockGuard {
        self.destination = destination;
        self.at_least = options.hold_at_least;
        self.into_guard()
    }

    /// Ends this hold, and begins the next one of the same lease.
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
        (self.destination, self.at_least, self.last) = (Destination::Store, None, fencing);
        self
    }

    fn releasing(&self, now: Instant) -> ReleaseRequest {
        ReleaseRequest::new(self.claim().clone()).after(self.stays(now).unwrap_or_default())
    }

    /// For how long it stays taken still: not at all if its body never began.
    pub(super) fn stays(&self, now: Instant) -> Option<Duration> {
        let until = self.frame.began()?.checked_add(self.at_least?)?;
        let left = until.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.frame.hold().check(now).is_ok()
    }

    pub(super) fn claim(&self) -> &Arc<Claim> {
        self.frame.hold().claim()
    }
}

impl LockGuard {
    /// The guard of a lock just granted, and whether the watchdog was woken for it. From the place `head`
    /// it is handed to others of this process; without one, a permit can be.
    pub(crate) fn granted(
        granted: GrantedLease,
        hold_at_least: Option<Duration>,
        head: Option<Head>,
        core: &Arc<Core>,
    ) -> (Self, bool) {
        let (asked, ttl, last) = (granted.asked, granted.ttl, granted.fencing);
        let destination = match (head, granted.claim.sharing(), granted.claim.keys()) {
            (Some(head), ..) => Destination::NextWaiter(head),
            (None, Sharing::Permits(_), [_]) => Destination::Permit(None),
            (None, ..) => Destination::Store,
        };
        let hold = Arc::new(LeaseState::new(granted));
        let (id, woken) = core.watchdog.watch(&hold, asked, ttl);
        if matches!(destination, Destination::Permit(_)) {
            core.permits().came(id, &hold);
        }
        let frame = Arc::new(Frame::first(hold, core.clone()));
        let held = Box::new(HeldLease { id, frame, destination, last, at_least: hold_at_least });
        (held.into_guard(), woken)
    }

    /// Hands a lock that was kept to a caller that asks for it with these options. If it does not fit, it is given
    /// back: sent before the store is asked, or it would keep out a caller that asks only once.
    pub(crate) async fn take_cached_lock(
        self,
        options: &ResolvedOptions,
        head: Head,
    ) -> Result<Self, Head> {
        let now = Instant::now();
        match self.into_held() {
            Some(held) if held.is_held(now) && held.fits_alone(options, now) => {
                let lies_ready =
                    options.max_hold.is_none() && held.frame.hold().ttl() == options.ttl;
                Ok(match lies_ready {
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

    /// The lock itself, which a waiter did not take. Nothing if others have it too.
    pub(super) fn into_held(self) -> Option<Box<HeldLease>> {
        match self.ownership {
            Ownership::Lock(_, mut owned) => owned.0.take()?.leave(),
            Ownership::Reentry(_) => None,
        }
    }
}
