//! What the watchdog has to see to: which leases are due for what, and who drives it. No I/O, and
//! no clock of its own.
//!
//! Everything that decides whether a task is needed stands behind one mutex, this queue's, so that
//! no work is put down between a task's last look and its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::task::UnderWay;
use crate::LostReason;
use crate::hold::Hold;
use crate::store::{Claim, Renewal};

/// Renewals due within this time of each other travel in one batch.
const TOGETHER: Duration = Duration::from_millis(25);

/// Shortest pause before a renewal or a release that got no answer is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// Everything the watchdog has to see to.
#[derive(Default)]
pub(super) struct Queue {
    watched: HashMap<u64, Watched>,
    timers: BTreeSet<(Instant, u64)>,
    releases: BTreeMap<(Instant, u64), PendingRelease>,
    /// Releases that a caller has sent and left behind.
    adopted: Vec<UnderWay>,
    /// The tasks that drive this queue, one on each runtime that uses the manager: where one is
    /// blocked or gone, another goes on.
    runners: HashMap<runtime::Id, Arc<Notify>>,
    /// Until when they sleep, so that only an earlier timer has to wake them.
    asleep_until: Option<Instant>,
    /// Nothing more is granted.
    pub(super) shut_down: bool,
    /// Nobody can acquire any more: the tasks end when there is nothing left to do.
    pub(super) closing: bool,
    last_id: u64,
}

struct Watched {
    hold: Arc<Hold>,
    /// When to renew; `None` if no more.
    renew_at: Option<Instant>,
    timer: Instant,
}

/// A lock to give back as soon as the store can be asked.
#[derive(Clone, Debug)]
pub(super) struct PendingRelease {
    pub(super) claim: Arc<Claim>,
    /// When the store has let go by itself.
    pub(super) until: Instant,
    /// Whether we believed to hold it: then it is news if the store says otherwise.
    pub(super) held: bool,
}

/// What is due now.
#[derive(Default)]
pub(super) struct Due {
    pub(super) renewals: Vec<(u64, Renewal)>,
    pub(super) releases: Vec<PendingRelease>,
    pub(super) adopted: Vec<UnderWay>,
    /// When the next thing is due.
    pub(super) next: Option<Instant>,
}

impl Queue {
    /// Watches a hold just acquired at `asked` for `ttl`; after a shutdown, tells it at once.
    pub(super) fn watch(&mut self, hold: Arc<Hold>, asked: Instant, ttl: Duration) -> u64 {
        if self.shut_down {
            hold.lose(LostReason::ShutDown);
        }
        let id = self.next_id();
        let renew_at = hold.renew_at(asked, ttl);
        let timer = earlier(renew_at, hold.valid_until());
        self.timers.insert((timer, id));
        self.watched.insert(id, Watched { hold, renew_at, timer });
        if self.asleep_until.is_none_or(|asleep_until| timer < asleep_until) {
            self.wake();
        }
        id
    }

    /// Forgets a hold that ended.
    pub(super) fn forget(&mut self, id: u64) {
        if let Some(watched) = self.watched.remove(&id) {
            self.timers.remove(&(watched.timer, id));
        }
    }

    /// Gives a lock back, not before `at`.
    pub(super) fn release(&mut self, release: PendingRelease, at: Instant) {
        let id = self.next_id();
        self.releases.insert((at, id), release);
        self.wake();
    }

    /// Gives a lock back once more after no answer, unless its lease has ended by then.
    pub(super) fn release_again(&mut self, release: PendingRelease, now: Instant) {
        let at = now + (release.until.saturating_duration_since(now) / 20).max(TRY_AGAIN);
        if at < release.until {
            self.release(release, at);
        } else {
            let key = release.claim.key().as_str();
            tracing::warn!(key, "a release got no answer until the lease had ended by itself");
        }
    }

    /// Sees a release through that is already sent.
    pub(super) fn adopt(&mut self, under_way: UnderWay) {
        self.adopted.push(under_way);
        self.wake();
    }

    /// A renewal sent at `asked` for `ttl` was answered: wait for the next one.
    pub(super) fn renewed(&mut self, id: u64, asked: Instant, ttl: Duration) {
        let renew_at = self.watched.get(&id).and_then(|watched| watched.hold.renew_at(asked, ttl));
        self.set_renewal(id, renew_at);
    }

    /// A renewal got no answer: unknown is not lost, so try again until the deadline.
    pub(super) fn renew_again(&mut self, id: u64, now: Instant) {
        let again = self.watched.get(&id).map(|watched| watched.again(now, 10));
        self.set_renewal(id, again);
    }

    fn set_renewal(&mut self, id: u64, renew_at: Option<Instant>) {
        if let Some(watched) = self.watched.get_mut(&id) {
            watched.renew_at = renew_at;
            self.timers.remove(&(watched.timer, id));
            watched.timer = earlier(renew_at, watched.hold.valid_until());
            self.timers.insert((watched.timer, id));
        }
    }

    /// Takes out what is due, and signals the holds whose deadline has passed.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        let mut due = Due { adopted: std::mem::take(&mut self.adopted), ..Due::default() };
        let soon = now + TOGETHER;
        // What is due soon comes along with what is due now. Alone it waits for its own time, or a
        // lease shorter than that would be renewed without a pause.
        let any = self.timers.first().is_some_and(|(timer, _)| *timer <= now);
        let range = ..=(if any { soon } else { now }, u64::MAX);
        let ripe: Vec<_> = self.timers.range(range).copied().collect();
        for (timer, id) in ripe {
            self.timers.remove(&(timer, id));
            let Some(watched) = self.watched.get_mut(&id) else { continue };
            // The check signals the loss; a lost hold needs no timer any more.
            if watched.hold.check(now).is_err() {
                continue;
            }
            if watched.renew_at.is_some_and(|renew_at| renew_at <= soon) {
                // The answer sets the next time; without one, this does.
                watched.renew_at = Some(watched.again(now, 3));
                let claim = watched.hold.claim().clone();
                due.renewals.push((id, Renewal::new(claim, watched.hold.renewal_ttl(now))));
            }
            watched.timer = earlier(watched.renew_at, watched.hold.valid_until());
            self.timers.insert((watched.timer, id));
        }
        let later = self.releases.split_off(&(now, u64::MAX));
        due.releases = std::mem::replace(&mut self.releases, later).into_values().collect();
        due.next = self.next();
        self.asleep_until = due.next;
        due
    }

    fn next(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(timer, _)| *timer);
        let release = self.releases.first_key_value().map(|((at, _), _)| *at);
        timer.into_iter().chain(release).min()
    }

    pub(super) fn hold(&self, id: u64) -> Option<Arc<Hold>> {
        self.watched.get(&id).map(|watched| watched.hold.clone())
    }

    pub(super) fn lose_all(&self, reason: LostReason) {
        self.watched.values().for_each(|watched| watched.hold.lose(reason));
    }

    /// Stops watching everything, all of it lost, and says what was held.
    pub(super) fn abandon(&mut self) -> Vec<Arc<Claim>> {
        self.lose_all(LostReason::ShutDown);
        self.timers.clear();
        self.watched.drain().map(|(_, watched)| watched.hold.claim().clone()).collect()
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Nothing held, nothing to release, and nobody who still releases.
    pub(super) fn is_settled(&self) -> bool {
        self.watched.is_empty() && self.runners.is_empty() && self.has_no_work()
    }

    fn has_no_work(&self) -> bool {
        self.timers.is_empty() && self.releases.is_empty() && self.adopted.is_empty()
    }

    /// Notes a task on `runtime`, unless there is one; what wakes it.
    pub(super) fn enter(&mut self, runtime: runtime::Id) -> Option<Arc<Notify>> {
        if self.runners.contains_key(&runtime) {
            return None;
        }
        let wake = Arc::<Notify>::default();
        self.runners.insert(runtime, wake.clone());
        Some(wake)
    }

    /// Lets the task on `runtime` end if there is nothing left to do for it.
    pub(super) fn may_leave(&mut self, runtime: runtime::Id) -> bool {
        let leaves = self.closing && self.has_no_work();
        if leaves {
            self.runners.remove(&runtime);
        }
        leaves
    }

    /// The task on `runtime` is gone.
    pub(super) fn leave(&mut self, runtime: runtime::Id) {
        self.runners.remove(&runtime);
        // Another may have slept because this one was awake.
        self.wake();
    }

    pub(super) fn wake(&self) {
        self.runners.values().for_each(|runner| runner.notify_one());
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

impl Watched {
    /// When to try again if nothing is heard: after a part of the time left.
    fn again(&self, now: Instant, part: u32) -> Instant {
        let left = self.hold.valid_until().saturating_duration_since(now);
        now + (left / part).max(TRY_AGAIN)
    }
}

fn earlier(renew_at: Option<Instant>, deadline: Instant) -> Instant {
    renew_at.map_or(deadline, |renew_at| renew_at.min(deadline))
}
