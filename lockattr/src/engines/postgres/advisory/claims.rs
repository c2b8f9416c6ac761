//! The claims of a store: on which session each holds its locks, which of them wait, and when each
//! ends without a renewal. No I/O.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::session::Session;
use super::wait::Waiter;
use crate::FencingToken;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{Claim, OwnerToken};

#[derive(Default)]
pub(super) struct Claims(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_token: HashMap<OwnerToken, Entry>,
    /// The names that are held or asked for on each session. A session can take a lock that it
    /// holds again, so two claims for one name must use different sessions.
    on: HashMap<(u64, String), OwnerToken>,
}

struct Entry {
    claim: Arc<Claim>,
    state: State,
}

#[derive(Clone)]
pub(super) enum State {
    /// The claim was sent on this session, and the answer is not known yet.
    Requested(Arc<Session>),
    Held(Held),
    Waiting(Arc<Waiter>),
}

#[derive(Clone)]
pub(super) struct Held {
    pub(super) on: Arc<Session>,
    pub(super) fencing: FencingToken,
    pub(super) ends: Instant,
    /// The claim was released, and its locks stay held for a while.
    pub(super) released_at_end: bool,
}

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
        let others = claim.keys().iter().find_map(|key| {
            let token = entries.on.get(&(on.id, key.name().to_owned()))?;
            entries.by_token.get(token)
        });
        if let Some(other) = others {
            let ends = match &other.state {
                State::Held(held) => Some(held.ends),
                State::Requested(_) | State::Waiting(_) => None,
            };
            return Err((other.claim.clone(), ends));
        }
        entries.put(claim, State::Requested(on.clone()));
        Ok(())
    }

    /// Enters a claim whose locks a task waits for.
    pub(super) fn wait(&self, claim: &Arc<Claim>, waiter: &Arc<Waiter>) {
        let mut entries = self.entries();
        entries.remove(claim.token());
        entries.put(claim, State::Waiting(waiter.clone()));
    }

    /// Enters a claim that acquired its locks, unless it was released meanwhile.
    pub(super) fn hold(&self, claim: &Arc<Claim>, held: Held) -> bool {
        let mut entries = self.entries();
        let there = entries.remove(claim.token()).is_some();
        if there {
            held.on.wake_keeper_by(held.ends);
            entries.put(claim, State::Held(held));
        }
        there
    }

    /// Extends a lease to `ttl` from now, and never shortens it.
    pub(super) fn extend(&self, token: OwnerToken, ttl: Duration) {
        let mut entries = self.entries();
        if let Some(Entry { state: State::Held(held), .. }) = entries.by_token.get_mut(&token) {
            held.ends = held.ends.max(deadline_after(ttl));
        }
    }

    /// Keeps the locks of a released claim for `after`.
    pub(super) fn hold_at_least(&self, token: OwnerToken, after: Duration) {
        let mut entries = self.entries();
        if let Some(Entry { state: State::Held(held), .. }) = entries.by_token.get_mut(&token) {
            (held.released_at_end, held.ends) = (true, deadline_after(after));
            held.on.wake_keeper_by(held.ends);
        }
    }

    /// Removes a claim, and returns what it held or waited for.
    pub(super) fn remove(&self, token: OwnerToken) -> Option<State> {
        self.entries().remove(token).map(|entry| entry.state)
    }

    /// Removes the claims whose lease on this session has ended; also returns the next end.
    pub(super) fn remove_expired(
        &self,
        session: u64,
        now: Instant,
    ) -> (Vec<Arc<Claim>>, Option<Instant>) {
        let mut entries = self.entries();
        let (mut over, mut next) = (Vec::new(), None::<Instant>);
        for entry in entries.by_token.values() {
            match &entry.state {
                State::Held(held) if held.on.id == session && held.ends <= now => {
                    over.push(entry.claim.clone());
                }
                State::Held(held) if held.on.id == session => {
                    next = Some(next.map_or(held.ends, |next| next.min(held.ends)));
                }
                _ => {}
            }
        }
        over.iter().for_each(|claim| drop(entries.remove(claim.token())));
        (over, next)
    }

    /// Removes all claims of an ended session, and returns those that held locks.
    pub(super) fn lost(&self, session: u64) -> Vec<Arc<Claim>> {
        let mut entries = self.entries();
        let affected = entries.by_token.values().filter_map(|entry| match &entry.state {
            State::Held(held) if held.on.id == session => {
                Some((entry.claim.clone(), !held.released_at_end))
            }
            State::Requested(on) if on.id == session => Some((entry.claim.clone(), false)),
            _ => None,
        });
        let affected: Vec<_> = affected.collect();
        affected.iter().for_each(|(claim, _)| drop(entries.remove(claim.token())));
        affected.into_iter().filter_map(|(claim, held)| held.then_some(claim)).collect()
    }

    /// The claim here that holds this lock on the server process `pid`, and the end of its lease.
    pub(super) fn holder(&self, name: &str, pid: i32) -> Option<(Arc<Claim>, Instant)> {
        self.entries().by_token.values().find_map(|entry| match &entry.state {
            State::Held(held) if held.on.pid == pid && has(&entry.claim, name) => {
                Some((entry.claim.clone(), held.ends))
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

impl Entries {
    fn put(&mut self, claim: &Arc<Claim>, state: State) {
        if let State::Requested(on) | State::Held(Held { on, .. }) = &state {
            for key in claim.keys() {
                self.on.insert((on.id, key.name().to_owned()), claim.token());
            }
        }
        self.by_token.insert(claim.token(), Entry { claim: claim.clone(), state });
    }

    fn remove(&mut self, token: OwnerToken) -> Option<Entry> {
        let entry = self.by_token.remove(&token)?;
        if let State::Requested(on) | State::Held(Held { on, .. }) = &entry.state {
            for key in entry.claim.keys() {
                self.on.remove(&(on.id, key.name().to_owned()));
            }
        }
        Some(entry)
    }
}

fn has(claim: &Claim, name: &str) -> bool {
    claim.keys().iter().any(|key| key.name() == name)
}

/// The instant in `after`, or in a century if that is out of range.
pub(super) fn deadline_after(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after).unwrap_or_else(|| now + Duration::from_secs(100 * 365 * 24 * 60 * 60))
}
