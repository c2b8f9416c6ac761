//! The watched leases, and when each is to be renewed. No I/O, and no clock of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::new_leases::Lease;
use super::queue::MIN_RETRY_PAUSE;
use crate::lease::LeaseState;
use crate::store::{OwnerToken, RenewRequest};

/// The reciprocal of the part of its TTL by which a renewal may be early, to share a batch with
/// others: a tenth of the interval between two renewals.
const EARLY: u32 = 30;

/// The leases by id, and a timer for each.
#[derive(Default)]
pub(super) struct Leases {
    watched: HashMap<u64, Watched>,
    timers: BTreeSet<(Instant, u64)>,
    /// The ids by token: a connection that ends loses thousands of leases, one token at a time.
    tokens: BTreeSet<(u128, u64)>,
}

struct Watched {
    hold: Arc<LeaseState>,
    /// When to renew; `None` if never again.
    renew_at: Option<Instant>,
    /// Whether to renew at `renew_at` even if the answer to an earlier renewal arrives before.
    is_urgent: bool,
    /// Whether the store no longer has the lease. A holder that hands it off at this moment may not
    /// know.
    is_lost: bool,
    timer: Instant,
}

impl Leases {
    /// Watches a lease that came from [`NewLeases`](super::new_leases::NewLeases).
    pub(super) fn watch(&mut self, Lease { id, hold, renew_at }: Lease) {
        let timer = earlier(renew_at, hold.valid_until());
        self.timers.insert((timer, id));
        self.tokens.insert((order_of(&hold), id));
        self.watched
            .insert(id, Watched { hold, renew_at, is_urgent: false, is_lost: false, timer });
    }

    /// Replaces the hold of a lease by the next one. Returns whether to renew it now, because the
    /// last hold was not renewed.
    pub(super) fn hand_off(&mut self, id: u64, hold: &Arc<LeaseState>, now: Instant) -> bool {
        let Some(watched) = self.watched.get_mut(&id) else { return false };
        let before = std::mem::replace(&mut watched.hold, hold.clone());
        if order_of(&before) != order_of(hold) {
            self.tokens.remove(&(order_of(&before), id));
            self.tokens.insert((order_of(hold), id));
        }
        let is_due = watched.renew_at.is_none();
        if is_due {
            self.set_renewal(id, hold.renew_at(now, Duration::ZERO));
        }
        is_due
    }

    pub(super) fn forget(&mut self, id: u64) {
        if let Some(watched) = self.watched.remove(&id) {
            self.timers.remove(&(watched.timer, id));
            self.tokens.remove(&(order_of(&watched.hold), id));
        }
    }

    /// A renewal sent at `requested_at` for `ttl` was answered: schedules the next one.
    pub(super) fn renewed(&mut self, id: u64, requested_at: Instant, ttl: Duration) {
        let renew_at =
            self.watched.get(&id).and_then(|watched| watched.hold.renew_at(requested_at, ttl));
        self.set_renewal(id, renew_at);
    }

    /// A renewal got no answer. Its result is unknown, so it is tried again until the deadline.
    pub(super) fn renew_again(&mut self, id: u64, now: Instant) {
        let retry_at = self.watched.get(&id).map(|watched| watched.retry_at(now, 10));
        self.set_renewal(id, retry_at);
    }

    /// Makes a renewal due now, because it also changes the lock in the store.
    pub(super) fn renew_now(&mut self, id: u64, now: Instant) {
        self.set_renewal(id, Some(now));
        if let Some(watched) = self.watched.get_mut(&id) {
            watched.is_urgent = true;
        }
    }

    fn set_renewal(&mut self, id: u64, renew_at: Option<Instant>) {
        if let Some(watched) = self.watched.get_mut(&id).filter(|watched| !watched.is_urgent) {
            watched.renew_at = renew_at;
            self.timers.remove(&(watched.timer, id));
            watched.timer = earlier(renew_at, watched.hold.valid_until());
            self.timers.insert((watched.timer, id));
        }
    }

    /// The renewals that are due, and the holds whose deadline has passed.
    pub(super) fn due(&mut self, now: Instant) -> (Vec<(u64, RenewRequest)>, Vec<Arc<LeaseState>>) {
        let (mut due, mut expired) = (Vec::new(), Vec::new());
        let first = self.timers.first().filter(|(timer, _)| *timer <= now);
        let Some(first) = first.and_then(|(_, id)| self.watched.get(id)) else {
            return (due, expired);
        };
        // Leases that may share a batch with the first. A lease without others waits until its own
        // time.
        let range = ..=(now + first.early(now), u64::MAX);
        let candidates: Vec<_> = self.timers.range(range).copied().collect();
        for (timer, id) in candidates {
            let Some(watched) = self.watched.get_mut(&id) else { continue };
            if timer > now + watched.early(now) {
                continue;
            }
            self.timers.remove(&(timer, id));
            if !watched.hold.is_live(now) {
                expired.push(watched.hold.clone());
                continue;
            }
            if watched.renew_at.is_some_and(|renew_at| renew_at <= timer) {
                // The answer sets the next time; this one counts if there is no answer.
                watched.renew_at = Some(watched.retry_at(now, 3));
                watched.is_urgent = false;
                let claim = watched.hold.claim().clone();
                due.push((id, RenewRequest::new(claim, watched.hold.renewal_ttl(now))));
            }
            watched.timer = earlier(watched.renew_at, watched.hold.valid_until());
            self.timers.insert((watched.timer, id));
        }
        (due, expired)
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.timers.first().map(|(timer, _)| *timer)
    }

    pub(super) fn hold(&self, id: u64) -> Option<Arc<LeaseState>> {
        self.watched.get(&id).map(|watched| watched.hold.clone())
    }

    /// Marks a lease as lost in the store. Returns the hold to signal.
    pub(super) fn lose(&mut self, id: u64) -> Option<Arc<LeaseState>> {
        self.watched.get_mut(&id).map(Watched::lose)
    }

    /// Marks all leases of the claim with this token as lost. Returns the holds to signal.
    pub(super) fn lose_all_of(&mut self, token: OwnerToken) -> Vec<Arc<LeaseState>> {
        let ids: Vec<_> = self.ids_of(token).collect();
        ids.into_iter().filter_map(|id| self.lose(id)).collect()
    }

    pub(super) fn is_lost(&self, id: u64) -> bool {
        self.watched.get(&id).is_some_and(|watched| watched.is_lost)
    }

    pub(super) fn holds_of(&self, token: OwnerToken) -> Vec<Arc<LeaseState>> {
        self.ids_of(token).filter_map(|id| self.hold(id)).collect()
    }

    fn ids_of(&self, token: OwnerToken) -> impl Iterator<Item = u64> {
        let token = token.order();
        self.tokens.range((token, 0)..=(token, u64::MAX)).map(|(_, id)| *id)
    }

    pub(super) fn all(&self) -> Vec<Arc<LeaseState>> {
        in_order(self.watched.iter().map(|(id, watched)| (*id, watched.hold.clone())))
    }

    pub(super) fn abandon(&mut self) -> Vec<Arc<LeaseState>> {
        self.timers.clear();
        self.tokens.clear();
        in_order(self.watched.drain().map(|(id, watched)| (id, watched.hold)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }
}

impl Watched {
    fn lose(&mut self) -> Arc<LeaseState> {
        self.is_lost = true;
        self.hold.clone()
    }

    /// By how much its renewal may be early.
    fn early(&self, now: Instant) -> Duration {
        self.hold.renewal_ttl(now) / EARLY
    }

    /// When to retry a renewal without an answer: after a part of the remaining time.
    fn retry_at(&self, now: Instant, part: u32) -> Instant {
        let remaining = self.hold.valid_until().saturating_duration_since(now);
        now + (remaining / part).max(MIN_RETRY_PAUSE)
    }
}

/// Sorted by id, because the order of a map differs from run to run.
fn in_order(holds: impl Iterator<Item = (u64, Arc<LeaseState>)>) -> Vec<Arc<LeaseState>> {
    let mut holds: Vec<_> = holds.collect();
    holds.sort_by_key(|(id, _)| *id);
    holds.into_iter().map(|(_, hold)| hold).collect()
}

fn order_of(hold: &LeaseState) -> u128 {
    hold.claim().token().order()
}

fn earlier(renew_at: Option<Instant>, deadline: Instant) -> Instant {
    renew_at.map_or(deadline, |renew_at| renew_at.min(deadline))
}

#[cfg(test)]
mod tests;
