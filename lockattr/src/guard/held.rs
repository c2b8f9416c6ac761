//! What a guard owns: the lock itself, which goes back to the store once, or to the next in line.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Grip, LockGuard};
use crate::chain::Frame;
use crate::hold::{Granted, Hold, validity};
use crate::line::Next;
use crate::manager::Ahead;
use crate::observe;
use crate::options::Terms;
use crate::store::{self, Claim, Releasing};
use crate::watchdog::Watchdog;
use crate::{Error, FencingToken, Lease, LostReason};

/// The lock, given back by hand or by drop; `None` once it is.
///
/// Boxed, so that the guard of a nested call, which has none, is small.
pub(super) struct Owned(Option<Box<Held>>);

/// The lock as this process has it.
struct Held {
    /// The watchdog's number of the lease.
    id: u64,
    frame: Arc<Frame>,
    /// The place from which it is handed to others of this process, where they may have it.
    ahead: Option<Ahead>,
    /// For how long it stays taken at least, from when its body began, whoever lets go of it.
    at_least: Option<Duration>,
}

impl Owned {
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
        let now = Instant::now();
        let Some(held) = self.0.take().and_then(|held| held.pass_on(now)) else { return Ok(()) };
        // Until the answer is here, dropping this future must still give the lock back.
        let held = self.0.insert(held);
        let hold = held.frame.hold().clone();
        let releases = [held.releasing(now)];
        hold.lose(LostReason::Released);
        let answer = held.frame.watchdog().store().release(&releases).await.pop();
        match answer {
            Some(Ok(store::Release::Released)) => {
                observe::release("released");
                self.given_back();
                Ok(())
            }
            Some(Ok(store::Release::NotHeld)) | None => {
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
        let watchdog = held.frame.watchdog().clone();
        let waits = watchdog.release_in_background(release, until, is_held).await;
        self.given_back();
        waits
    }

    /// Nothing more is owed. Only now the watchdog forgets the hold: a shutdown waits until then.
    fn given_back(&mut self) {
        if let Some(held) = self.0.take() {
            held.frame.watchdog().forget(held.id);
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.leave_to_parent();
        let now = Instant::now();
        if let Some(held) = self.0.take().and_then(|held| held.pass_on(now)) {
            let (is_held, until) = (held.is_held(now), held.frame.hold().store_lets_go_at());
            let release = held.releasing(now);
            held.frame.hold().lose(LostReason::Released);
            held.frame.watchdog().release_later(release, until, is_held);
            held.frame.watchdog().forget(held.id);
        }
    }
}

impl Held {
    /// Hands the lock to the next in this process, or keeps it for the next call. What is left
    /// goes back to the store.
    fn pass_on(mut self: Box<Self>, now: Instant) -> Option<Box<Self>> {
        if !self.is_held(now) || self.stays(now).is_some() {
            self.ahead = None;
            return Some(self);
        }
        while let Some(ahead) = self.ahead.take() {
            match ahead.next(now, |terms| self.fits(terms, now)) {
                Next::Hand(waiter) => {
                    let guard = self.hand_over(waiter.wants(), ahead, now);
                    let Err(guard) = waiter.hand(guard) else { return None };
                    // That one is gone; it may fit the next.
                    self = guard.into_held()?;
                }
                Next::Nobody { wanted: true } => return Some(self),
                Next::Nobody { wanted: false } => return self.keep(ahead, now),
            }
        }
        Some(self)
    }

    /// Keeps the lock in this process for a while, if that is wished and nobody waits for it.
    fn keep(self: Box<Self>, ahead: Ahead, now: Instant) -> Option<Box<Self>> {
        let Some(fencing) = self.frame.hold().fencing().handed_over() else { return Some(self) };
        let Some(until) = self.frame.watchdog().keeps(self.claim().key().name(), now) else {
            return Some(self);
        };
        // For its holder it ends here; the next hold lies ready.
        let ttl = self.frame.hold().ttl();
        let kept = self.next_hold(fencing, ttl, None, now).into_guard();
        ahead.keep(kept, until).err().and_then(LockGuard::into_held)
    }

    /// Whether who wants the lock on these terms can have it without asking the store: its lease is
    /// as long as it asks for, of which at least half is left.
    fn fits(&self, terms: &Terms, now: Instant) -> bool {
        let left = self.frame.hold().valid_until().saturating_duration_since(now);
        terms.renew
            && left >= validity(terms.ttl) / 2
            && left <= terms.ttl
            && self.frame.hold().fencing().handed_over().is_some()
    }

    /// The guard of the next hold of the same lease; only if it [fits](Self::fits).
    fn hand_over(self: Box<Self>, terms: &Terms, ahead: Ahead, now: Instant) -> LockGuard {
        // It fits, so there is a number left.
        let fencing = self.frame.hold().fencing();
        let fencing = fencing.handed_over().unwrap_or(fencing);
        self.next_hold(fencing, terms.ttl, terms.max_hold, now).guard(terms, ahead)
    }

    /// The guard of this hold, for who begins it now.
    fn guard(mut self: Box<Self>, terms: &Terms, ahead: Ahead) -> LockGuard {
        self.ahead = Some(ahead);
        self.at_least = terms.hold_at_least;
        self.into_guard()
    }

    fn into_guard(self: Box<Self>) -> LockGuard {
        LockGuard::of(Grip::Lock(Lease::new(self.frame.clone()), Owned(Some(self))))
    }

    /// Ends this hold, and begins the next one of the same lease.
    fn next_hold(
        mut self: Box<Self>,
        fencing: FencingToken,
        ttl: Duration,
        max_hold: Option<Duration>,
        now: Instant,
    ) -> Box<Self> {
        let (hold, watchdog) = (self.frame.hold(), self.frame.watchdog());
        let next = Arc::new(hold.handed_over(fencing, ttl, max_hold, now));
        hold.lose(LostReason::Released);
        watchdog.hand_over(self.id, &next, now);
        self.frame = Arc::new(Frame::first(next, watchdog.clone()));
        (self.ahead, self.at_least) = (None, None);
        self
    }

    fn releasing(&self, now: Instant) -> Releasing {
        Releasing::new(self.claim().clone()).after(self.stays(now).unwrap_or_default())
    }

    /// For how long it stays taken still: not at all if its body never began.
    fn stays(&self, now: Instant) -> Option<Duration> {
        let until = self.frame.began()?.checked_add(self.at_least?)?;
        let left = until.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    fn is_held(&self, now: Instant) -> bool {
        self.frame.hold().check(now).is_ok()
    }

    fn claim(&self) -> &Arc<Claim> {
        self.frame.hold().claim()
    }
}

impl LockGuard {
    /// The guard of a lock just granted, and whether the watchdog was woken for it.
    pub(crate) fn granted(
        granted: Granted,
        hold_at_least: Option<Duration>,
        ahead: Option<Ahead>,
        watchdog: &Arc<Watchdog>,
    ) -> (Self, bool) {
        let (asked, ttl) = (granted.asked, granted.ttl);
        let hold = Arc::new(Hold::new(granted));
        let (id, woken) = watchdog.watch(&hold, asked, ttl);
        let frame = Arc::new(Frame::first(hold, watchdog.clone()));
        let held = Box::new(Held { id, frame, ahead, at_least: hold_at_least });
        (held.into_guard(), woken)
    }

    /// Hands a lock that was kept to who asks for it on these terms. If it does not fit, it is given
    /// back: sent before the store is asked, or it would keep out who asks only once.
    pub(crate) async fn revive(self, terms: &Terms, ahead: Ahead) -> Result<Self, Ahead> {
        let now = Instant::now();
        match self.into_held() {
            Some(held) if held.is_held(now) && held.fits(terms, now) => {
                let lies_ready = terms.max_hold.is_none() && held.frame.hold().ttl() == terms.ttl;
                Ok(match lies_ready {
                    true => held.guard(terms, ahead),
                    false => held.hand_over(terms, ahead, now),
                })
            }
            held => {
                Owned(held).release_in_background().await;
                Err(ahead)
            }
        }
    }

    fn into_held(self) -> Option<Box<Held>> {
        match self.grip {
            Grip::Lock(_, mut owned) => owned.0.take(),
            Grip::Turn(_) => None,
        }
    }
}
