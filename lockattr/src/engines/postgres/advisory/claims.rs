//! Which claims have their locks on which session, which of them wait, and until when each lasts if
//! no process renews it. No I/O.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::session::Session;
use super::wait::Waiter;
use crate::FencingToken;
use crate::store::{Claim, OwnerToken};

/// The claims of one store.
#[derive(Default)]
pub(super) struct Claims(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_token: HashMap<OwnerToken, Entry>,
    /// The names that are taken or asked for on each session. A session gets what it has already, so
    /// that two claims for one name must not be on the same.
    on: HashMap<(u64, String), OwnerToken>,
}

/// A claim that may have something.
struct Entry {
    claim: Arc<Claim>,
    state: State,
}

/// How it stands with a claim.
#[derive(Clone)]
pub(super) enum State {
    /// It was asked for there, and the answer is unknown yet.
    Asked(Arc<Session>),
    Held(Held),
    Waiting(Arc<Waiter>),
}

/// What a claim has.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) on: Arc<Session>,
    pub(super) fencing: FencingToken,
    pub(super) ends: Instant,
    /// It was given back, and stays taken for a while still.
    pub(super) stays: bool,
}

impl Claims {
    pub(super) fn state(&self, token: OwnerToken) -> Option<State> {
        self.entries().by_token.get(&token).map(|entry| entry.state.clone())
    }

    /// Notes that the claim is about to ask on this session; if one of its names is taken or asked
    /// for there, the claim that did so, and when it ends if it is held.
    pub(super) fn ask(
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
                State::Asked(_) | State::Waiting(_) => None,
            };
            return Err((other.claim.clone(), ends));
        }
        entries.put(claim, State::Asked(on.clone()));
        Ok(())
    }

    /// Notes that a task waits for the claim's locks, unless the claim has or asked for something.
    pub(super) fn wait(&self, claim: &Arc<Claim>, waits: &Arc<Waiter>) {
        let mut entries = self.entries();
        entries.remove(claim.token());
        entries.put(claim, State::Waiting(waits.clone()));
    }

    /// The claim has its locks, unless it was given back meanwhile.
    pub(super) fn hold(&self, claim: &Arc<Claim>, held: Held) -> bool {
        let mut entries = self.entries();
        let there = entries.remove(claim.token()).is_some();
        if there {
            held.on.wake_keeper_by(held.ends);
            entries.put(claim, State::Held(held));
        }
        there
    }

    /// Makes a lease run for `ttl` from now, and never shorter than it did.
    pub(super) fn extend(&self, token: OwnerToken, ttl: Duration) {
        let mut entries = self.entries();
        if let Some(Entry { state: State::Held(held), .. }) = entries.by_token.get_mut(&token) {
            held.ends = held.ends.max(deadline_after(ttl));
        }
    }

    /// It stays taken for so long still, and is no process's.
    pub(super) fn stay(&self, token: OwnerToken, after: Duration) {
        let mut entries = self.entries();
        if let Some(Entry { state: State::Held(held), .. }) = entries.by_token.get_mut(&token) {
            (held.stays, held.ends) = (true, deadline_after(after));
            held.on.wake_keeper_by(held.ends);
        }
    }

    /// Forgets a claim; what it had or waited for.
    pub(super) fn remove(&self, token: OwnerToken) -> Option<State> {
        self.entries().remove(token).map(|entry| entry.state)
    }

    /// Forgets those whose lease on this session has ended, and when the next one ends.
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

    /// Forgets all that was on a session that has ended; what was held there.
    pub(super) fn lost(&self, session: u64) -> Vec<Arc<Claim>> {
        let mut entries = self.entries();
        let on_it = entries.by_token.values().filter_map(|entry| match &entry.state {
            State::Held(held) if held.on.id == session => Some((entry.claim.clone(), !held.stays)),
            State::Asked(on) if on.id == session => Some((entry.claim.clone(), false)),
            _ => None,
        });
        let on_it: Vec<_> = on_it.collect();
        on_it.iter().for_each(|(claim, _)| drop(entries.remove(claim.token())));
        on_it.into_iter().filter_map(|(claim, held)| held.then_some(claim)).collect()
    }

    /// The claim that holds the lock of this name in this process, where its session has the server
    /// process `pid`, and until when.
    pub(super) fn holder(&self, name: &str, pid: i32) -> Option<(Arc<Claim>, Instant)> {
        self.entries().by_token.values().find_map(|entry| match &entry.state {
            State::Held(held) if held.on.pid == pid && has(&entry.claim, name) => {
                Some((entry.claim.clone(), held.ends))
            }
            _ => None,
        })
    }

    /// All that wait.
    pub(super) fn waiting(&self) -> Vec<Arc<Waiter>> {
        let entries = self.entries();
        let waiting = entries.by_token.values().filter_map(|entry| match &entry.state {
            State::Waiting(waits) => Some(waits.clone()),
            _ => None,
        });
        waiting.collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn put(&mut self, claim: &Arc<Claim>, state: State) {
        if let State::Asked(on) | State::Held(Held { on, .. }) = &state {
            for key in claim.keys() {
                self.on.insert((on.id, key.name().to_owned()), claim.token());
            }
        }
        self.by_token.insert(claim.token(), Entry { claim: claim.clone(), state });
    }

    fn remove(&mut self, token: OwnerToken) -> Option<Entry> {
        let entry = self.by_token.remove(&token)?;
        if let State::Asked(on) | State::Held(Held { on, .. }) = &entry.state {
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

/// In `after`, or in a century if that is later than time goes.
pub(super) fn deadline_after(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after).unwrap_or_else(|| now + Duration::from_secs(100 * 365 * 24 * 60 * 60))
}
