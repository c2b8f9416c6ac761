//! Which locks are owed to the store: to be given back, or on their way there. No I/O, and no clock
//! of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::runtime;
use tokio::time::Instant;

use super::batch::UnderWay;
use super::queue::MIN_RETRY_PAUSE;
use crate::store::ReleaseRequest;

/// Longest pause before a release is tried again: somebody may be waiting for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A lock to give back as soon as the store can be asked.
#[derive(Clone, Debug)]
pub(super) struct PendingRelease {
    pub(super) lock: ReleaseRequest,
    /// Until when it stays taken, whenever that is sent.
    pub(super) stays_until: Option<Instant>,
    /// When the lease has ended by itself. The first tries come by the time that is left until then.
    pub(super) until: Instant,
    /// When there is nothing to give back any more: later, if the claim may be in a queue.
    pub(super) gives_up: Instant,
    /// Whether we believed to hold it: then it is remarkable if the store says otherwise.
    pub(super) held: bool,
}

impl PendingRelease {
    pub(super) fn new(lock: ReleaseRequest, until: Instant, held: bool, now: Instant) -> Self {
        let stays_until = (!lock.after.is_zero()).then(|| now.checked_add(lock.after)).flatten();
        Self { lock, stays_until, until, gives_up: until, held }
    }

    /// The same, but tried for so much longer: the claim may be in a queue.
    pub(super) fn at_least_for(mut self, longer: Duration) -> Self {
        self.gives_up += longer;
        self
    }

    /// What to send at `now`.
    pub(super) fn sent(&self, now: Instant) -> ReleaseRequest {
        let stays = self.stays_until.map(|until| until.saturating_duration_since(now));
        self.lock.clone().after(stays.unwrap_or_default())
    }
}

/// The releases that are not settled.
#[derive(Default)]
pub(super) struct Releases {
    /// By the time before which they are not sent.
    waiting: BTreeMap<(Instant, u64), PendingRelease>,
    /// Sent and left behind by their caller, with the runtime on which that was.
    adopted: Vec<(runtime::Id, UnderWay)>,
    /// All of them: the above, and those that a task has under way.
    unsettled: usize,
    /// Send all that wait now, whatever their time.
    retry_now: bool,
    last_id: u64,
}

impl Releases {
    /// Gives a lock back.
    pub(super) fn add(&mut self, release: PendingRelease, now: Instant) {
        self.unsettled += 1;
        self.insert(release, now);
    }

    /// Takes one again that is owed still: not before `at`.
    pub(super) fn put_back(&mut self, mut release: PendingRelease, at: Instant) {
        // If it is gone the next time, that may have been this time's doing.
        release.held = false;
        self.insert(release, at);
    }

    fn insert(&mut self, release: PendingRelease, at: Instant) {
        self.last_id += 1;
        self.waiting.insert((at, self.last_id), release);
    }

    /// Gives a lock back once more after no answer, unless its lease has ended by then: such a release is
    /// returned, and settled.
    pub(super) fn again(
        &mut self,
        release: PendingRelease,
        now: Instant,
    ) -> Option<PendingRelease> {
        let left = release.until.saturating_duration_since(now);
        let pause = if left.is_zero() { LONGEST_PAUSE / 4 } else { left / 20 };
        let at = now + pause.clamp(MIN_RETRY_PAUSE, LONGEST_PAUSE);
        if at < release.gives_up {
            self.put_back(release, at);
            return None;
        }
        self.settled();
        Some(release)
    }

    /// One is about to be sent by its caller.
    pub(super) fn sent_by_caller(&mut self) {
        self.unsettled += 1;
    }

    /// Leaves to the task on `runtime` what its caller has sent there.
    pub(super) fn adopt(&mut self, runtime: runtime::Id, under_way: UnderWay) {
        self.adopted.push((runtime, under_way));
    }

    /// What was adopted on `runtime`.
    pub(super) fn adopted_on(&mut self, runtime: runtime::Id) -> Vec<UnderWay> {
        let on_it = self.adopted.extract_if(.., |(on, _)| *on == runtime);
        on_it.map(|(_, under_way)| under_way).collect()
    }

    /// One is answered, or no longer worth a try.
    pub(super) fn settled(&mut self) {
        self.unsettled -= 1;
    }

    /// Makes all that wait due.
    pub(super) fn retry_now(&mut self) {
        self.retry_now = !self.waiting.is_empty();
    }

    /// Takes out what is due.
    pub(super) fn due(&mut self, now: Instant) -> Vec<PendingRelease> {
        let later = match std::mem::take(&mut self.retry_now) {
            true => BTreeMap::new(),
            false => self.waiting.split_off(&(now, u64::MAX)),
        };
        std::mem::replace(&mut self.waiting, later).into_values().collect()
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Whether none is to be sent, nor on its way.
    pub(super) fn all_settled(&self) -> bool {
        self.unsettled == 0
    }
}

#[cfg(test)]
mod tests;
