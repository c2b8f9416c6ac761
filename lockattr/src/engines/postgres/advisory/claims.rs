//! The claims of a store: on which session each holds its locks, which of them wait, and when each
//! ends without a renewal. No I/O.

mod entries;
mod on_sessions;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::inspect::held_by;
use super::lock_table::LockTable;
use super::session::Session;
use super::waiter::Waiter;
use crate::Holder;
use crate::lock::century::at_most_a_century;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{Claim, OwnerToken, StoreError};
use entries::{Entries, Entry};
pub(super) use entries::{Held, State};

#[derive(Default)]
pub(super) struct Claims(Mutex<Entries>);

impl Claims {
    pub(super) fn state(&self, token: OwnerToken) -> Option<State> {
        self.entries().by_token.get(&token).map(|entry| entry.state.clone())
    }

    /// Enters a claim that is about to ask on this session. If another claim holds or asks for one
    /// of its names there, returns that claim, and when its lease ends if it holds the lock.
    pub(super) fn begin(
        &self,
        claim: &Arc<Claim>,
        on: &Arc<Session>,
    ) -> Result<(), (Arc<Claim>, Option<Instant>)> {
        let mut entries = self.entries();
        let other = entries.on_sessions.user(on.id, claim);
        if let Some(other) = other.and_then(|other| entries.by_token.get(&other)) {
            let ends = match &other.state {
                State::Held(held) => Some(held.ends),
                State::Requested(_) | State::Waiting(_) | State::Leaving(_) | State::GaveUp => None,
            };
            return Err((other.claim.clone(), ends));
        }
        entries.put(claim, State::Requested(on.clone()));
        Ok(())
    }

    /// The locks of a claim are about to be requested of the server, unless that would be too many,
    /// or the claim was given up.
    pub(super) fn send(&self, claim: &Claim, table: &LockTable) -> Result<(), StoreError> {
        let mut entries = self.entries();
        let locks = entries.locks;
        let Some(entry) = entries.by_token.get_mut(&claim.token()) else {
            return Err(StoreError::new("the claim was given up").not_sent());
        };
        if !entry.is_sent {
            table.check(claim, locks)?;
            entry.is_sent = true;
            entries.locks += claim.keys().len();
        }
        Ok(())
    }

    /// Enters a claim whose locks a task waits for.
    pub(super) fn wait(&self, claim: &Arc<Claim>, waiter: &Arc<Waiter>) {
        let mut entries = self.entries();
        entries.remove(claim.token());
        entries.put(claim, State::Waiting(waiter.clone()));
    }

    /// Enters that a waiting claim tries to take its locks on this session. Returns `false` if it
    /// no longer waits, or another claim uses one of its names there.
    pub(super) fn try_on(&self, claim: &Claim, session: u64) -> bool {
        let mut entries = self.entries();
        if entries.on_sessions.user(session, claim).is_some() {
            return false;
        }
        let Some(entry) = entries.remove(claim.token()) else { return false };
        let waits = matches!(entry.state, State::Waiting(_));
        let tries_on = waits.then_some(session);
        entries.enter(Entry { tries_on, is_sent: false, ..entry });
        waits
    }

    /// A waiting claim no longer tries. Returns `false` if it no longer waits.
    pub(super) fn end_try(&self, token: OwnerToken) -> bool {
        let mut entries = self.entries();
        let Some(entry) = entries.remove(token) else { return false };
        if matches!(entry.state, State::GaveUp) {
            return false;
        }
        entries.enter(Entry { tries_on: None, is_sent: false, ..entry });
        true
    }

    /// Enters a claim that acquired its locks, unless it was released meanwhile.
    pub(super) fn hold(&self, claim: &Arc<Claim>, held: Held) -> bool {
        let mut entries = self.entries();
        match entries.by_token.get(&claim.token()) {
            None | Some(Entry { state: State::Leaving(_) | State::GaveUp, .. }) => return false,
            Some(_) => {}
        }
        entries.remove(claim.token());
        held.on.wake_keeper_by(held.ends);
        entries.put(claim, State::Held(held));
        true
    }

    /// Extends a lease to `ttl` from now, and never shortens it.
    pub(super) fn extend(&self, token: OwnerToken, ttl: Duration) {
        self.entries().change(token, |held| held.ends = held.ends.max(deadline_after(ttl)));
    }

    /// Keeps the locks of a released claim for `after`.
    pub(super) fn hold_at_least(&self, token: OwnerToken, after: Duration) {
        self.entries().change(token, |held| {
            (held.released_at_end, held.ends) = (true, deadline_after(after));
            held.on.wake_keeper_by(held.ends);
        });
    }

    /// Removes a claim, and returns what it held or waited for.
    pub(super) fn remove(&self, token: OwnerToken) -> Option<State> {
        self.entries().remove(token).map(|entry| entry.state)
    }

    /// A claim is about to release its locks, or gives up. Returns what it held or waited for, once.
    /// Its names stay in use on its session until it is removed.
    pub(super) fn leave(&self, token: OwnerToken) -> Option<State> {
        self.entries().leave(token).map(|(_, state)| state)
    }

    /// The same for the claims whose lease on this session has ended; also returns the next end.
    pub(super) fn leave_expired(
        &self,
        session: u64,
        now: Instant,
    ) -> (Vec<Arc<Claim>>, Option<Instant>) {
        let (mut entries, mut over) = (self.entries(), Vec::new());
        loop {
            match entries.on_sessions.first_end(session) {
                Some((end, token)) if end <= now => {
                    over.extend(entries.leave(token).map(|(claim, _)| claim));
                }
                next => return (over, next.map(|(end, _)| end)),
            }
        }
    }

    /// Removes all claims of an ended session, and returns those that held locks.
    pub(super) fn lost(&self, session: u64) -> Vec<Arc<Claim>> {
        let (mut entries, mut lost) = (self.entries(), Vec::new());
        for token in entries.on_sessions.all_on(session) {
            match entries.remove(token) {
                // The task that waits for it learns of the end of the session by itself.
                Some(entry @ Entry { state: State::Waiting(_), .. }) => {
                    entries.enter(Entry { tries_on: None, is_sent: false, ..entry });
                }
                Some(Entry { claim, state: State::Held(held), .. }) if !held.released_at_end => {
                    lost.push(claim);
                }
                _ => {}
            }
        }
        lost
    }

    /// The claim here that holds this lock on the server process `pid`, and as which holder.
    pub(super) fn holder(&self, name: &str, pid: i32) -> Option<(Arc<Claim>, Holder)> {
        let entries = self.entries();
        entries.on_sessions.users_of(name).find_map(|token| match entries.by_token.get(&token)? {
            Entry { claim, state: State::Held(held), .. } if held.on.pid == pid => {
                Some((claim.clone(), held_by(claim, Some(held.ends), &held.on)))
            }
            _ => None,
        })
    }

    pub(super) fn waiting(&self) -> Vec<Arc<Waiter>> {
        let entries = self.entries();
        let waiting = entries.by_token.values().filter_map(|entry| match &entry.state {
            State::Waiting(waiter) => Some(waiter.clone()),
            _ => None,
        });
        waiting.collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // No code panics half-way through a change, so a poisoned lock is still consistent.
        self.0.lock()
    }
}

/// The instant in `after`, or in a century if that is longer.
pub(super) fn deadline_after(after: Duration) -> Instant {
    Instant::now() + at_most_a_century(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{LockKey, Sharing, Subscriber};

    /// A claim that waits in this process has no lock at the server, however many wait.
    ///
    /// Red without: `is_sent`, if all claims counted.
    #[test]
    fn only_what_was_sent_to_the_server_counts_as_a_lock() {
        let (claims, table) = (Claims::default(), LockTable::default());
        table.is(4);
        let subscriber = Subscriber::new(|_name| {});
        let waiting: Vec<_> = (0..10)
            .map(|nth| {
                let key = LockKey::new("lock:", &format!("k{nth}")).unwrap();
                Arc::new(Claim::of(&subscriber, key, [], Sharing::Exclusive, ""))
            })
            .collect();
        waiting.iter().for_each(|claim| claims.wait(claim, &Waiter::new()));
        let [one, two, three, ..] = &waiting[..] else { unreachable!("ten") };
        claims.send(one, &table).unwrap();
        claims.send(two, &table).unwrap();
        claims.send(two, &table).expect("it counts once");
        let refused = claims.send(three, &table).unwrap_err();
        assert!(refused.is_not_sent());
        assert!(claims.end_try(one.token()), "it waits");
        claims.send(three, &table).expect("there is room again");
    }

    /// A session can take a lock again that it has. The claim that gave up would release the lock of
    /// the next one.
    ///
    /// Red without: `State::GaveUp`.
    #[test]
    fn a_claim_that_gives_up_while_it_tries_keeps_its_names_until_it_has_tried() {
        let claims = Claims::default();
        let subscriber = Subscriber::new(|_name| {});
        let claim = || {
            let key = LockKey::new("lock:", "a").unwrap();
            Arc::new(Claim::of(&subscriber, key, [], Sharing::Exclusive, ""))
        };
        let (one, other) = (claim(), claim());
        [&one, &other].iter().for_each(|claim| claims.wait(claim, &Waiter::new()));
        assert!(claims.try_on(&one, 7));
        assert!(matches!(claims.leave(one.token()), Some(State::Waiting(_))), "to cancel it");
        assert!(claims.leave(one.token()).is_none(), "once");
        assert!(!claims.try_on(&other, 7));
        assert!(claims.try_on(&other, 8), "another session");
        assert!(claims.end_try(other.token()));
        assert!(!claims.end_try(one.token()), "it waits no more");
        assert!(claims.try_on(&other, 7));
        assert!(claims.end_try(other.token()));
        claims.remove(other.token());
        assert!(claims.entries().by_token.is_empty());
    }
}
