//! The state of one hold of a lock: until when it is valid, and how it ended. No I/O.

mod silence;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::platform::process::Process;
use crate::platform::timers::has_timers;
use crate::store::{Claim, Sharing};
use crate::{Error, FencingToken, LostReason};
use silence::Silence;

/// A granted acquisition, from which a hold is made.
#[derive(Debug)]
pub(crate) struct GrantedLease {
    pub(crate) claim: Arc<Claim>,
    pub(crate) fencing: FencingToken,
    /// Just before the request was sent. All times count from here, because the store may have
    /// started the lease at any time after.
    pub(crate) requested_at: Instant,
    pub(crate) ttl: Duration,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) progress_within: Option<Duration>,
}

/// The state of a hold, shared by its guard, its leases and the watchdog.
#[derive(Debug)]
pub(crate) struct LeaseState {
    claim: Arc<Claim>,
    /// The shared lease, if several callers of this process hold it together. It ends for all of
    /// them at once.
    shared_lease: Option<Arc<LeaseState>>,
    fencing: FencingToken,
    requested_at: Instant,
    renew: bool,
    max_hold: Option<Duration>,
    /// Unset if the holder may be silent.
    silence: Option<Box<Silence>>,
    /// Length of the lease, in nanoseconds; grows by `extend`.
    ttl: AtomicU64,
    /// The conservative deadline, in nanoseconds after `requested_at`; only grows.
    valid_for: AtomicU64,
    /// When the lease ends in the store, in nanoseconds after `requested_at`; only grows.
    lasts: AtomicU64,
    /// The same if every `extend` had succeeded; only grows.
    may_last: AtomicU64,
    phase: AtomicU8,
    ended: Notify,
    /// The template of its holder's call; unset until a caller has the hold.
    template: OnceLock<&'static str>,
    /// Whether its loss was reported.
    is_reported: AtomicBool,
    /// The process that holds the lock; a fork of it does not.
    process: Process,
}

const HELD: u8 = 0;
const RELEASED: u8 = 1;
const EXPIRED: u8 = 2;
const TAKEN: u8 = 3;
const MAX_HOLD: u8 = 4;
const SHUT_DOWN: u8 = 5;
const FORKED: u8 = 6;
const SILENT: u8 = 7;

impl LeaseState {
    pub(crate) fn new(granted: GrantedLease) -> Self {
        let GrantedLease { claim, fencing, requested_at, ttl, renew, max_hold, progress_within } =
            granted;
        Self {
            claim,
            shared_lease: None,
            fencing,
            requested_at,
            renew,
            max_hold,
            silence: progress_within.map(|within| Box::new(Silence::new(within, Instant::now()))),
            ttl: AtomicU64::new(nanos(ttl)),
            valid_for: AtomicU64::new(nanos(validity(ttl))),
            lasts: AtomicU64::new(nanos(ttl)),
            may_last: AtomicU64::new(nanos(ttl)),
            phase: AtomicU8::new(HELD),
            ended: Notify::new(),
            template: OnceLock::new(),
            is_reported: AtomicBool::new(false),
            process: Process::current(),
        }
    }

    /// The next hold of the same lease. It begins now and is renewed, without a request to the
    /// store.
    pub(crate) fn handed_off(
        &self,
        fencing: FencingToken,
        ttl: Duration,
        max_hold: Option<Duration>,
        now: Instant,
    ) -> Self {
        let remaining = |field: &AtomicU64| {
            let until = self.requested_at + Duration::from_nanos(field.load(Ordering::Acquire));
            AtomicU64::new(nanos(until.saturating_duration_since(now)))
        };
        Self {
            claim: self.claim.clone(),
            shared_lease: None,
            fencing,
            requested_at: now,
            renew: true,
            max_hold,
            // A lease that is handed off has no such bound: its next holder asks the store.
            silence: None,
            ttl: AtomicU64::new(nanos(ttl)),
            valid_for: remaining(&self.valid_for),
            lasts: remaining(&self.lasts),
            may_last: remaining(&self.may_last),
            phase: AtomicU8::new(HELD),
            ended: Notify::new(),
            template: OnceLock::new(),
            is_reported: AtomicBool::new(false),
            process: self.process.clone(),
        }
    }

    /// The hold of one reader of a shared lease. The lease determines its deadline and whether it
    /// is lost.
    pub(crate) fn reader_of(lease: &Arc<Self>, fencing: FencingToken, now: Instant) -> Self {
        let hold = lease.handed_off(fencing, lease.ttl(), None, now);
        Self { shared_lease: Some(lease.clone()), ..hold }
    }

    pub(crate) fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    /// The mode in which the holder has the lock. A reader may hold it under an exclusive lease.
    pub(crate) fn sharing(&self) -> Sharing {
        if self.shared_lease.is_some() { Sharing::Shared } else { self.claim.sharing() }
    }

    /// The state of the lease in the store.
    fn lease(&self) -> &Self {
        self.shared_lease.as_deref().unwrap_or(self)
    }

    /// Records that a caller has the hold, and the template of its call.
    pub(crate) fn set_template(&self, template: &'static str) {
        self.template.get_or_init(|| template);
        if let Some(lease) = &self.shared_lease {
            lease.set_template(template);
        }
    }

    /// The template of its holder's call; `None` while no caller has the hold.
    pub(crate) fn template(&self) -> Option<&'static str> {
        self.template.get().copied()
    }

    /// Whether the loss of its lease has not been reported before: several readers may find the
    /// same loss.
    pub(crate) fn is_first_report(&self) -> bool {
        !self.lease().is_reported.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn fencing(&self) -> FencingToken {
        self.fencing
    }

    /// The instant from which its times count.
    pub(crate) fn requested_at(&self) -> Instant {
        self.requested_at
    }

    /// The conservative deadline: from here on no process may assume that it holds the lock. For a
    /// holder that has to report progress, also the end of its silence.
    pub(crate) fn valid_until(&self) -> Instant {
        let lease = self.lease();
        let valid =
            lease.requested_at + Duration::from_nanos(lease.valid_for.load(Ordering::Acquire));
        self.silence.as_ref().map_or(valid, |silence| valid.min(silence.ends()))
    }

    /// Records that the holder makes progress.
    pub(crate) fn report_progress(&self, now: Instant) {
        if let Some(silence) = &self.silence {
            silence.report(now);
        }
    }

    /// Whether the lease lasts as long as the holder may be silent, so that its silence ends it.
    fn is_silent(&self) -> bool {
        let lasts = Duration::from_nanos(self.lasts.load(Ordering::Acquire));
        self.silence.as_ref().is_some_and(|silence| silence.ends() <= self.requested_at + lasts)
    }

    /// `Ok` while the lease is valid. The clock decides, not the timer that should have fired.
    pub(crate) fn check(&self, now: Instant) -> Result<(), LostReason> {
        if !self.is_of_this_process() {
            return Err(LostReason::Forked);
        }
        match (self.phase.load(Ordering::Acquire), &self.shared_lease) {
            (HELD, Some(lease)) => lease.check(now).inspect_err(|reason| self.end(*reason)),
            (phase, _) => self.check_phase(phase, now),
        }
    }

    fn check_phase(&self, phase: u8, now: Instant) -> Result<(), LostReason> {
        match phase {
            HELD if now < self.valid_until() => Ok(()),
            HELD => {
                let reason = if self.capped() {
                    LostReason::MaxHold
                } else if self.is_silent() {
                    LostReason::Silent
                } else {
                    LostReason::Expired
                };
                self.lose(reason);
                Err(reason)
            }
            phase => Err(reason(phase)),
        }
    }

    /// How it ended, as far as that is known without the clock.
    pub(crate) fn ended_by(&self) -> Option<LostReason> {
        match self.phase.load(Ordering::Acquire) {
            HELD => self.shared_lease.as_ref()?.ended_by(),
            phase => Some(reason(phase)),
        }
    }

    /// Whether this process holds the lock, and not its parent.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process.is_current()
    }

    /// Ends the hold if its deadline has passed. Returns how it ended.
    pub(crate) fn signal_end(&self) -> Option<LostReason> {
        // `check` signals it.
        self.check(Instant::now()).err()
    }

    /// Whether the store should keep the lease: also while a shutdown waits for the holder, which
    /// was signalled and may need some time.
    pub(crate) fn is_live(&self, now: Instant) -> bool {
        let phase = self.phase.load(Ordering::Acquire);
        (phase == HELD || phase == SHUT_DOWN) && now < self.valid_until()
    }

    /// [`check`](Self::check) as the public error.
    pub(crate) fn ensure_held(&self, now: Instant) -> Result<(), Error> {
        self.check(now).map_err(|reason| self.lost(reason))
    }

    pub(crate) fn lost(&self, reason: LostReason) -> Error {
        Error::Lost { key: self.claim.named(), reason }
    }

    /// Ends the lease for all holders. A holder that only releases its own hold calls
    /// [`end`](Self::end).
    pub(crate) fn lose(&self, reason: LostReason) {
        if let Some(lease) = &self.shared_lease {
            lease.end(reason);
        }
        self.end(reason);
    }

    /// Ends the hold and wakes all tasks that wait for that. The first reason stays.
    pub(crate) fn end(&self, reason: LostReason) {
        let phase = match reason {
            LostReason::Expired => EXPIRED,
            LostReason::Taken => TAKEN,
            LostReason::MaxHold => MAX_HOLD,
            LostReason::ShutDown => SHUT_DOWN,
            LostReason::Released => RELEASED,
            LostReason::Forked => FORKED,
            LostReason::Silent => SILENT,
        };
        let first =
            self.phase.compare_exchange(HELD, phase, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            self.ended.notify_waiters();
        }
    }

    /// Waits for the end of the hold, by its signal or by its deadline.
    ///
    /// The timer belongs to this call and not to the watchdog, whose runtime may be busy.
    pub(crate) async fn ended(self: Arc<Self>) -> LostReason {
        let Some(lease) = &self.shared_lease else { return self.ended_alone().await };
        let reason = tokio::select! {
            biased;
            reason = self.clone().ended_alone() => reason,
            reason = lease.clone().ended_alone() => reason,
        };
        self.end(reason);
        reason
    }

    async fn ended_alone(self: Arc<Self>) -> LostReason {
        // Elsewhere the watchdog's signal has to do.
        let has_timers = has_timers();
        let mut signal = pin!(self.ended.notified());
        // Register first, check second, so that an end in between is not missed.
        signal.as_mut().enable();
        loop {
            if let Err(reason) = self.check(Instant::now()) {
                return reason;
            }
            let deadline = has_timers.then(|| sleep_until(self.valid_until()));
            tokio::select! {
                biased;
                () = signal.as_mut() => {}
                Some(()) = OptionFuture::from(deadline) => {}
            }
        }
    }

    pub(crate) fn renewal_ttl(&self, now: Instant) -> Duration {
        self.at_most(self.ttl(), now)
    }

    /// `ttl`, but never past `max_hold`, nor past the end of the holder's silence.
    pub(crate) fn at_most(&self, ttl: Duration, now: Instant) -> Duration {
        if let Some(lease) = &self.shared_lease {
            return lease.at_most(ttl, now);
        }
        let ttl = self
            .max_hold
            .map_or(ttl, |max_hold| ttl.min(max_hold.saturating_sub(now - self.requested_at)));
        self.silence.as_ref().map_or(ttl, |silence| silence.at_most(ttl, now))
    }

    /// The store renewed the lease for `ttl` by a request sent at `requested_at`.
    pub(crate) fn renewed(&self, requested_at: Instant, ttl: Duration) {
        if let Some(lease) = &self.shared_lease {
            return lease.renewed(requested_at, ttl);
        }
        // A lease that expired meanwhile stays lost: a caller may have learned of it.
        if self.is_live(Instant::now()) {
            // The renewal may have been sent for the previous hold of the same lease.
            let until =
                |ttl| nanos((requested_at + ttl).saturating_duration_since(self.requested_at));
            self.lasts.fetch_max(until(ttl), Ordering::AcqRel);
            self.valid_for.fetch_max(until(validity(ttl)), Ordering::AcqRel);
        }
    }

    pub(crate) fn lengthen(&self, ttl: Duration) {
        self.lease().ttl.fetch_max(nanos(ttl), Ordering::AcqRel);
    }

    /// Records a request that is about to be sent, at `requested_at`, for a lease of `ttl`.
    pub(crate) fn note_request(&self, requested_at: Instant, ttl: Duration) {
        let lease = self.lease();
        let lasts = requested_at.saturating_duration_since(lease.requested_at) + ttl;
        lease.may_last.fetch_max(nanos(lasts), Ordering::AcqRel);
    }

    /// When the lease has certainly ended in the store, if no further command arrives there.
    pub(crate) fn expires_in_store_at(&self) -> Instant {
        let ttl = self.ttl();
        let may_last = Duration::from_nanos(self.may_last.load(Ordering::Acquire));
        // A whole TTL past the deadline: a renewal in flight may still have reached the store.
        (self.requested_at + may_last).max(self.valid_until()) + ttl
    }

    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_nanos(self.lease().ttl.load(Ordering::Acquire))
    }

    /// When to renew a lease that was just renewed at `requested_at` for `ttl`; `None` if never.
    pub(crate) fn renew_at(&self, requested_at: Instant, ttl: Duration) -> Option<Instant> {
        (self.renew && !self.capped()).then(|| requested_at + ttl / 3)
    }

    /// Whether the lease already lasts as long as `max_hold` allows.
    fn capped(&self) -> bool {
        let lasts = Duration::from_nanos(self.lasts.load(Ordering::Acquire));
        self.max_hold.is_some_and(|max_hold| lasts >= max_hold)
    }
}

/// The part of a TTL that is reliable: less 1 % and 2 ms for clocks of different speeds, as in
/// Redlock.
pub(crate) fn validity(ttl: Duration) -> Duration {
    ttl.saturating_sub(ttl / 100 + Duration::from_millis(2))
}

fn reason(phase: u8) -> LostReason {
    match phase {
        RELEASED => LostReason::Released,
        TAKEN => LostReason::Taken,
        MAX_HOLD => LostReason::MaxHold,
        SHUT_DOWN => LostReason::ShutDown,
        FORKED => LostReason::Forked,
        SILENT => LostReason::Silent,
        _ => LostReason::Expired,
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
