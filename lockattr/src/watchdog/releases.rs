//! Pending releases: those to send, and those in flight. No I/O, and no clock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime;
use tokio::time::Instant;

use super::batch::UnderWay;
use super::queue::MIN_RETRY_PAUSE;
use crate::lease::LeaseState;
use crate::store::ReleaseRequest;

/// The longest pause before a release is tried again: another process may wait for the lock.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A lock to release as soon as a request can be sent.
#[derive(Clone, Debug)]
pub(super) struct PendingRelease {
    pub(super) lock: ReleaseRequest,
    /// Until when the lock stays held, whenever the release is sent.
    pub(super) held_until: Option<Instant>,
    /// When the lease ends. The time that is left until then determines the first retries.
    pub(super) until: Instant,
    /// When to stop retrying: later than `until` if the claim may be in a queue.
    pub(super) give_up_at: Instant,
    /// The hold, if the process believed that it held the lock. If the store answers otherwise, the
    /// lock was lost.
    pub(super) held: Option<Arc<LeaseState>>,
}

impl PendingRelease {
    pub(super) fn new(
        lock: ReleaseRequest,
        until: Instant,
        held: Option<Arc<LeaseState>>,
        now: Instant,
    ) -> Self {
        let held_until = (!lock.after.is_zero()).then(|| now.checked_add(lock.after)).flatten();
        Self { lock, held_until, until, give_up_at: until, held }
    }

    /// The same, retried for `longer`, because the claim may be in a queue.
    pub(super) fn retry_longer(mut self, longer: Duration) -> Self {
        self.give_up_at += longer;
        self
    }

    pub(super) fn request(&self, now: Instant) -> ReleaseRequest {
        let after = self.held_until.map(|until| until.saturating_duration_since(now));
        self.lock.clone().after(after.unwrap_or_default())
    }
}

#[derive(Default)]
pub(super) struct Releases {
    /// Releases that are not sent yet, by the earliest time at which to send them.
    waiting: BTreeMap<(Instant, u64), PendingRelease>,
    /// Releases that a caller sent and left behind, with the runtime on which it did.
    adopted: Vec<(runtime::Id, UnderWay)>,
    /// The number of all releases: the above, and those that a task has in flight.
    unsettled: usize,
    /// Whether to send all waiting releases now, whatever their time.
    retry_now: bool,
    last_id: u64,
}

impl Releases {
    pub(super) fn add(&mut self, release: PendingRelease, now: Instant) {
        self.unsettled += 1;
        self.insert(release, now);
    }

    /// Puts a pending release back. It is not sent before `at`.
    pub(super) fn put_back(&mut self, mut release: PendingRelease, at: Instant) {
        // If the lock is gone the next time, this attempt may have released it.
        release.held = None;
        self.insert(release, at);
    }

    fn insert(&mut self, release: PendingRelease, at: Instant) {
        self.last_id += 1;
        self.waiting.insert((at, self.last_id), release);
    }

    /// Schedules an unanswered release again. If its lease has ended by then, settles and returns
    /// it.
    pub(super) fn retry(
        &mut self,
        release: PendingRelease,
        now: Instant,
    ) -> Option<PendingRelease> {
        let remaining = release.until.saturating_duration_since(now);
        let pause = if remaining.is_zero() { MAX_RETRY_PAUSE / 4 } else { remaining / 20 };
        let at = now + pause.clamp(MIN_RETRY_PAUSE, MAX_RETRY_PAUSE);
        if at < release.give_up_at {
            self.put_back(release, at);
            return None;
        }
        self.settled();
        Some(release)
    }

    /// Counts a release that a caller is about to send itself.
    pub(super) fn sent_by_caller(&mut self) {
        self.unsettled += 1;
    }

    /// Passes a release that its caller has sent on `runtime` to the task there.
    pub(super) fn adopt(&mut self, runtime: runtime::Id, under_way: UnderWay) {
        self.adopted.push((runtime, under_way));
    }

    /// Takes out what was adopted on `runtime`.
    pub(super) fn adopted_on(&mut self, runtime: runtime::Id) -> Vec<UnderWay> {
        let on_it = self.adopted.extract_if(.., |(on, _)| *on == runtime);
        on_it.map(|(_, under_way)| under_way).collect()
    }

    /// Counts a release that was answered, or is given up.
    pub(super) fn settled(&mut self) {
        self.unsettled -= 1;
    }

    pub(super) fn retry_now(&mut self) {
        self.retry_now = !self.waiting.is_empty();
    }

    pub(super) fn due(&mut self, now: Instant) -> Vec<PendingRelease> {
        let later = match std::mem::take(&mut self.retry_now) {
            true => BTreeMap::new(),
            false => self.waiting.split_off(&(now, u64::MAX)),
        };
        std::mem::replace(&mut self.waiting, later).into_values().collect()
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Whether no release is waiting or in flight.
    pub(super) fn all_settled(&self) -> bool {
        self.unsettled == 0
    }
}

#[cfg(test)]
mod tests;
