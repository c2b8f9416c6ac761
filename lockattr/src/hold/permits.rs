//! The permits that this process has. While it has all permits of a key, no process that names the
//! same number of permits is granted one. So the next fencing token is the last token given here
//! plus one, and needs no request to the store.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use crate::FencingToken;
use crate::lease::LeaseState;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::Sharing;

/// With more permits than this, the process does not check whether it has all, and requests each
/// token.
const MAX_TRACKED: usize = 64;

/// The permits of this process, by lock name.
#[derive(Default)]
pub(crate) struct Permits(Mutex<HashMap<Box<str>, KeyPermits>>);

struct KeyPermits {
    /// The current hold of each lease, by the watchdog's id of the lease.
    leases: Vec<(u64, Arc<LeaseState>)>,
    /// The greatest token given here since the process got the first of these leases.
    last_token: FencingToken,
}

impl Permits {
    /// Records the lease with this id, which is a permit, and its current hold.
    pub(crate) fn add(&self, id: u64, hold: &Arc<LeaseState>) {
        let mut locks = self.locks();
        let (name, last_token) = (hold.claim().key().name(), hold.fencing());
        let new = || KeyPermits { leases: Vec::new(), last_token };
        let lock = match locks.get_mut(name) {
            Some(lock) => lock,
            None => locks.entry(name.into()).or_insert_with(new),
        };
        lock.last_token = lock.last_token.max(last_token);
        match lock.leases.iter_mut().find(|(other, _)| *other == id) {
            Some((_, holder)) => *holder = hold.clone(),
            None => lock.leases.push((id, hold.clone())),
        }
    }

    /// Records that the lease is released to the store. Called before the request is sent: from
    /// then on another process may be granted the permit.
    pub(crate) fn remove(&self, id: u64, name: &str) {
        let mut locks = self.locks();
        if let Some(lock) = locks.get_mut(name) {
            lock.leases.retain(|(other, _)| *other != id);
            if lock.leases.is_empty() {
                locks.remove(name);
            }
        }
    }

    /// Whether the [next](Self::next) token is known.
    pub(crate) fn knows_next(&self, name: &str, sharing: Sharing, now: Instant) -> bool {
        let locks = self.locks();
        locks.get(name).is_some_and(|lock| lock.next(sharing, now).is_some())
    }

    /// The next token, if this process has all permits and the store reserved one more token.
    pub(crate) fn next(&self, name: &str, sharing: Sharing, now: Instant) -> Option<FencingToken> {
        let mut locks = self.locks();
        let lock = locks.get_mut(name)?;
        lock.last_token = lock.next(sharing, now)?;
        Some(lock.last_token)
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<Box<str>, KeyPermits>> {
        // No code inside can panic half-way, so a poisoned lock is still valid.
        self.0.lock()
    }
}

impl KeyPermits {
    fn next(&self, sharing: Sharing, now: Instant) -> Option<FencingToken> {
        self.last_token.handed_off().filter(|_| self.is_all_of(sharing, now))
    }

    fn is_all_of(&self, sharing: Sharing, now: Instant) -> bool {
        // A `usize` holds a `u32`.
        let Sharing::Permits(count) = sharing else { return false };
        let count = count as usize;
        let is_held =
            |hold: &LeaseState| hold.claim().sharing() == sharing && hold.check(now).is_ok();
        count <= MAX_TRACKED
            && self.leases.len() >= count
            && self.leases.iter().filter(|(_, hold)| is_held(hold)).count() >= count
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lease::GrantedLease;
    use crate::store::{Claim, LockKey};

    const TTL: Duration = Duration::from_secs(10);

    fn hold(permits: u32, counter: u64, requested_at: Instant) -> Arc<LeaseState> {
        let key = LockKey::new("lock:", "a").unwrap();
        let claim = Claim::with(1, Arc::new([key]), Sharing::Permits(permits), "");
        let fencing = FencingToken::from_counter(counter);
        let (claim, renew, max_hold) = (Arc::new(claim), true, None);
        Arc::new(LeaseState::new(GrantedLease {
            claim,
            fencing,
            requested_at,
            ttl: TTL,
            renew,
            max_hold,
            progress_within: None,
        }))
    }

    /// Red without: any of the conditions in `is_all_of`; `remove`; the greatest token in `add`.
    #[tokio::test(start_paused = true)]
    async fn only_while_all_permits_are_here_and_held_the_next_number_is_known() {
        let (permits, now) = (Permits::default(), Instant::now());
        let two = Sharing::Permits(2);
        let next = |sharing, at| permits.next("lock:a", sharing, at);
        permits.add(1, &hold(2, 20, now));
        assert_eq!(next(two, now), None);
        permits.add(1, &hold(2, 20, now));
        assert_eq!(next(two, now), None, "it is the same lease");
        permits.add(2, &hold(2, 10, now));
        let last_token = FencingToken::from_counter(20);
        assert_eq!(next(two, now), last_token.handed_off());
        assert_eq!(next(two, now), last_token.handed_off().and_then(FencingToken::handed_off));
        assert_eq!(next(Sharing::Permits(1), now), None, "it is not what they were granted as");
        assert_eq!(permits.next("lock:b", two, now), None);
        permits.add(2, &hold(2, 30, now + TTL));
        assert!(permits.knows_next("lock:a", two, now));
        assert_eq!(next(two, now + TTL), None, "one lease has ended");
        permits.add(1, &hold(2, 25, now + TTL));
        assert_eq!(next(two, now + TTL), FencingToken::from_counter(30).handed_off());
        permits.remove(1, "lock:a");
        assert_eq!(next(two, now + TTL), None);
        permits.remove(2, "lock:a");
        assert!(permits.locks().is_empty());
    }
}
