//! The state of each claim. All that is counted or searched changes together with it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::super::session::Session;
use super::super::waiter::Waiter;
use super::on_sessions::OnSessions;
use crate::FencingToken;
use crate::store::{Claim, OwnerToken};

#[derive(Default)]
pub(super) struct Entries {
    pub(super) by_token: HashMap<OwnerToken, Entry>,
    pub(super) on_sessions: OnSessions,
    /// How many locks are held, or were requested of the server.
    pub(super) locks: usize,
}

pub(super) struct Entry {
    pub(super) claim: Arc<Claim>,
    pub(super) state: State,
    /// A shared session on which a waiting claim tries to take its locks.
    pub(super) tries_on: Option<u64>,
    /// Whether its locks were requested of the server.
    pub(super) is_sent: bool,
}

impl Entry {
    /// How many locks it holds, or has requested of the server.
    fn locks(&self) -> usize {
        if self.is_sent { self.claim.keys().len() } else { 0 }
    }

    /// The session that it uses, and the end of its lease if it holds its locks.
    fn place(&self) -> Option<(u64, Option<Instant>)> {
        match &self.state {
            State::Requested(on) | State::Leaving(on) => Some((on.id, None)),
            State::Held(Held { on, ends, .. }) => Some((on.id, Some(*ends))),
            State::Waiting(_) | State::GaveUp => Some((self.tries_on?, None)),
        }
    }
}

#[derive(Clone)]
pub(in super::super) enum State {
    /// The claim was sent on this session, and the answer is not known yet.
    Requested(Arc<Session>),
    Held(Held),
    Waiting(Arc<Waiter>),
    /// The claim is about to release its locks.
    Leaving(Arc<Session>),
    /// The claim waits no more, but still tries to take its locks on a shared session. Until it has
    /// released what it took, no other claim may take them there.
    GaveUp,
}

#[derive(Clone)]
pub(in super::super) struct Held {
    pub(in super::super) on: Arc<Session>,
    pub(in super::super) fencing: FencingToken,
    pub(in super::super) ends: Instant,
    /// The claim was released, and its locks stay held for a while.
    pub(in super::super) released_at_end: bool,
}

impl Entries {
    pub(super) fn put(&mut self, claim: &Arc<Claim>, state: State) {
        let is_sent = matches!(state, State::Held(_));
        self.enter(Entry { claim: claim.clone(), state, tries_on: None, is_sent });
    }

    pub(super) fn leave(&mut self, token: OwnerToken) -> Option<(Arc<Claim>, State)> {
        let entry = self.remove(token)?;
        let (claim, state) = (entry.claim.clone(), entry.state.clone());
        match &state {
            State::Requested(on) | State::Held(Held { on, .. }) => {
                let state = State::Leaving(on.clone());
                self.enter(Entry { state, ..entry });
            }
            State::Waiting(_) if entry.tries_on.is_some() => {
                self.enter(Entry { state: State::GaveUp, ..entry });
            }
            State::Waiting(_) => {}
            State::Leaving(_) | State::GaveUp => {
                self.enter(entry);
                return None;
            }
        }
        Some((claim, state))
    }

    pub(super) fn enter(&mut self, entry: Entry) {
        if let Some((session, ends)) = entry.place() {
            self.on_sessions.enter(session, &entry.claim, ends);
        }
        self.locks += entry.locks();
        self.by_token.insert(entry.claim.token(), entry);
    }

    pub(super) fn remove(&mut self, token: OwnerToken) -> Option<Entry> {
        let entry = self.by_token.remove(&token)?;
        if let Some((session, ends)) = entry.place() {
            self.on_sessions.leave(session, &entry.claim, ends);
        }
        self.locks -= entry.locks();
        Some(entry)
    }

    /// Changes a claim that holds its locks.
    pub(super) fn change(&mut self, token: OwnerToken, change: impl FnOnce(&mut Held)) {
        let entry = self.by_token.get_mut(&token);
        let Some(Entry { state: State::Held(held), .. }) = entry else { return };
        let before = held.ends;
        change(held);
        self.on_sessions.move_end(held.on.id, token, before, held.ends);
    }
}
