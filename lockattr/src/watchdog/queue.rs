//! The watchdog's timer queue: which leases are due for what. No I/O, and no clock of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::time::Instant;

use crate::LostReason;
use crate::hold::Hold;
use crate::store::{Claim, Renewal};

/// Renewals due within this time of each other travel in one batch.
const TOGETHER: Duration = Duration::from_millis(25);

/// Shortest pause before a renewal or a release that got no answer is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// Everything the watchdog has to see to.
#[derive(Debug, Default)]
pub(super) struct Queue {
    watched: HashMap<u64, Watched>,
    timers: BTreeSet<(Instant, u64)>,
    releases: BTreeMap<(Instant, u64), PendingRelease>,
    /// Until when the task sleeps, so that only an earlier timer has to wake it.
    asleep_until: Option<Instant>,
    last_id: u64,
}

#[derive(Debug)]
struct Watched {
    hold: Arc<Hold>,
    /// When to renew; `None` while a renewal is under way or none is wanted.
    renew_at: Option<Instant>,
    timer: Instant,
    /// The runtime the holder lives on; `None` once that is gone.
    runtime: Option<Handle>,
}

/// A lock to give back as soon as the store can be asked.
#[derive(Clone, Debug)]
pub(super) struct PendingRelease {
    pub(super) claim: Arc<Claim>,
    /// When the store has let go by itself.
    pub(super) until: Instant,
}

/// What is due now.
#[derive(Debug, Default)]
pub(super) struct Due {
    pub(super) renewals: Vec<(u64, Renewal)>,
    pub(super) releases: Vec<PendingRelease>,
    /// When the next thing is due.
    pub(super) next: Option<Instant>,
}

impl Queue {
    /// Watches a hold just acquired or renewed at `asked` for `ttl`; says whether the task sleeps
    /// too long for it.
    pub(super) fn watch(
        &mut self,
        hold: Arc<Hold>,
        asked: Instant,
        ttl: Duration,
        runtime: Option<Handle>,
    ) -> (u64, bool) {
        let id = self.next_id();
        let renew_at = hold.renew_at(asked, ttl);
        let timer = earlier(renew_at, hold.valid_until());
        self.timers.insert((timer, id));
        self.watched.insert(id, Watched { hold, renew_at, timer, runtime });
        (id, self.asleep_until.is_none_or(|asleep_until| timer < asleep_until))
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
    }

    /// Gives a lock back once more after no answer, unless its lease has ended by then.
    pub(super) fn release_again(&mut self, release: PendingRelease, now: Instant) {
        let at = now + (release.until.saturating_duration_since(now) / 20).max(TRY_AGAIN);
        if at < release.until {
            self.release(release, at);
        }
    }

    /// A renewal sent at `asked` for `ttl` was answered: wait for the next one.
    pub(super) fn renewed(&mut self, id: u64, asked: Instant, ttl: Duration) {
        let renew_at = self.watched.get(&id).and_then(|watched| watched.hold.renew_at(asked, ttl));
        self.set_renewal(id, renew_at);
    }

    /// A renewal got no answer: unknown is not lost, so try again until the deadline.
    pub(super) fn renew_again(&mut self, id: u64, now: Instant) {
        let left = self.watched.get(&id).map(|watched| watched.hold.valid_until() - now);
        self.set_renewal(id, left.map(|left| now + (left / 10).max(TRY_AGAIN)));
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
        let mut due = Due::default();
        let soon = now + TOGETHER;
        // What is due soon comes along with what is due now. Alone it waits for its own time, or a
        // lease shorter than that would be renewed without a pause.
        let any = self.timers.first().is_some_and(|(timer, _)| *timer <= now);
        let range = ..=(if any { soon } else { now }, u64::MAX);
        let ripe: Vec<_> = self.timers.range(range).copied().collect();
        for (timer, id) in ripe {
            self.timers.remove(&(timer, id));
            let Some(watched) = self.watched.get_mut(&id) else {
                continue;
            };
            // The check signals the loss; a lost hold needs no timer any more.
            if watched.hold.check(now).is_err() {
                continue;
            }
            if watched.renew_at.is_some_and(|renew_at| renew_at <= soon) {
                watched.renew_at = None;
                let claim = watched.hold.claim().clone();
                due.renewals.push((id, Renewal { claim, ttl: watched.hold.renewal_ttl(now) }));
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

    /// Stops watching everything, and says what was held.
    pub(super) fn abandon(&mut self) -> Vec<Arc<Claim>> {
        self.timers.clear();
        self.watched.drain().map(|(_, watched)| watched.hold.claim().clone()).collect()
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.watched.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty() && self.releases.is_empty()
    }

    /// A runtime other than `gone` that holders live on, where the task can go on.
    pub(super) fn runtime_besides(&mut self, gone: runtime::Id) -> Option<Handle> {
        for watched in self.watched.values_mut() {
            watched.runtime.take_if(|runtime| runtime.id() == gone);
        }
        self.watched.values().find_map(|watched| watched.runtime.clone())
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

fn earlier(renew_at: Option<Instant>, deadline: Instant) -> Instant {
    renew_at.map_or(deadline, |renew_at| renew_at.min(deadline))
}
