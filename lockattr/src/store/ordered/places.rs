//! The claims of a store that have entries, or may have some, and when each lease ends. No I/O, and
//! no clock of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::ensemble::{Entry, Held};
use crate::store::{Claim, LockKey, NET, OwnerToken};

/// The places, by the tokens of their claims.
#[derive(Debug, Default)]
pub(super) struct Places {
    by_token: HashMap<OwnerToken, Place>,
    /// When what is still there by then is removed.
    ends: BTreeMap<(Instant, u64), OwnerToken>,
    last: u64,
    /// When whoever removes it looks next.
    asleep_until: Option<Instant>,
}

/// What is known of a claim.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) claim: Arc<Claim>,
    pub(super) ttl: Duration,
    pub(super) is: Is,
    /// None while nobody knows what became of the question.
    pub(super) made: Option<Arc<Made>>,
    /// What goes on for it: it waits, or looks whether others do.
    pub(super) task: Option<Task>,
    ends: Option<(Instant, u64)>,
}

/// How it stands with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    /// It asks, or nobody knows the answer.
    Asking,
    /// It stands in line.
    Waiting {
        /// Whether it is only told, and comes to take what it finds free.
        told: bool,
    },
    /// It has its locks.
    Holding,
    /// It is being removed.
    Leaving {
        /// Whether it had its locks.
        held: bool,
    },
}

/// What a claim has in the store.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) session: u64,
    pub(super) number: u64,
    /// In the line of each key.
    pub(super) entries: Box<[Entry]>,
}

/// A task that ends with what it is for.
#[derive(Debug)]
pub(super) struct Task(Option<AbortHandle>);

impl Task {
    pub(super) fn new(handle: AbortHandle) -> Self {
        Self(Some(handle))
    }

    pub(super) fn goes_on(&self) -> bool {
        self.0.as_ref().is_some_and(|handle| !handle.is_finished())
    }

    /// Lets it come to its own end.
    pub(super) fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.abort();
        }
    }
}

impl Places {
    /// The claim is about to ask at `now`: what is known of it already, and whether it asked before
    /// and has no answer.
    pub(super) fn asks(
        &mut self,
        claim: &Arc<Claim>,
        ttl: Duration,
        now: Instant,
    ) -> (Option<Arc<Made>>, bool) {
        let token = claim.token();
        let again = self.by_token.contains_key(&token);
        let place = self.by_token.entry(token).or_insert_with(|| Place {
            claim: claim.clone(),
            ttl,
            is: Is::Asking,
            made: None,
            task: None,
            ends: None,
        });
        place.ttl = ttl;
        if matches!(place.is, Is::Leaving { .. }) {
            place.is = Is::Asking;
            place.made = None;
        }
        let made = place.made.clone();
        match place.is {
            Is::Holding => self.lasts(token, now + ttl),
            Is::Waiting { .. } => {}
            // Its lease begins with the answer. Should nobody come back for it, it ends then.
            _ => self.ends_at(token, Some(now + ttl + NET)),
        }
        (made, again)
    }

    pub(super) fn get(&mut self, token: OwnerToken) -> Option<&mut Place> {
        self.by_token.get_mut(&token)
    }

    /// This is what became of its question; `false` if it does not want it any more.
    pub(super) fn made(&mut self, token: OwnerToken, made: &Arc<Made>) -> bool {
        match self.by_token.get_mut(&token) {
            Some(place) if !matches!(place.is, Is::Leaving { .. }) => {
                place.made = Some(made.clone());
                true
            }
            _ => false,
        }
    }

    /// The claim has its locks, as was heard at `now`; `false` if it does not want them any more, or
    /// its session is over.
    pub(super) fn holds(&mut self, token: OwnerToken, made: &Arc<Made>, now: Instant) -> bool {
        let Some(place) = self.by_token.get_mut(&token) else { return false };
        let same = place.made.as_ref().is_some_and(|known| Arc::ptr_eq(known, made));
        if !same || matches!(place.is, Is::Leaving { .. }) {
            return false;
        }
        let held = std::mem::replace(&mut place.is, Is::Holding) == Is::Holding;
        place.task = None;
        let ends = now + place.ttl;
        match held {
            true => self.lasts(token, ends),
            false => self.ends_at(token, Some(ends)),
        }
        true
    }

    /// The claim stands in line from now on, for as long as it likes.
    pub(super) fn waits(&mut self, token: OwnerToken, told: bool) {
        if let Some(place) = self.by_token.get_mut(&token) {
            place.is = Is::Waiting { told };
            self.ends_at(token, None);
        }
    }

    /// The claim is about to be removed at `now`: what is to be removed, or nothing if there
    /// certainly is nothing.
    pub(super) fn leaves(&mut self, token: OwnerToken, now: Instant) -> Option<Leaver> {
        let place = self.by_token.get_mut(&token)?;
        let held = matches!(place.is, Is::Holding | Is::Leaving { held: true });
        place.is = Is::Leaving { held };
        place.task = None;
        let leaver = Leaver { claim: place.claim.clone(), made: place.made.clone(), held };
        let ttl = place.ttl;
        // Should nobody come back for it.
        self.ends_at(token, Some(now + ttl));
        Some(leaver)
    }

    /// It is gone.
    pub(super) fn remove(&mut self, token: OwnerToken) -> Option<Place> {
        self.ends_at(token, None);
        self.by_token.remove(&token)
    }

    /// Its lease runs until `end` at least.
    pub(super) fn lasts(&mut self, token: OwnerToken, end: Instant) {
        let known = self.end_of(token);
        self.ends_at(token, Some(known.map_or(end, |known| known.max(end))));
    }

    /// It is removed at `end`, if then.
    pub(super) fn ends_at(&mut self, token: OwnerToken, end: Option<Instant>) {
        let Some(place) = self.by_token.get_mut(&token) else { return };
        if let Some(was) = place.ends.take() {
            self.ends.remove(&was);
        }
        if let Some(end) = end {
            self.last += 1;
            place.ends = Some((end, self.last));
            self.ends.insert((end, self.last), token);
        }
    }

    /// When the lease of a holder ends by itself.
    pub(super) fn end_of(&self, token: OwnerToken) -> Option<Instant> {
        self.by_token.get(&token)?.ends.map(|(end, _)| end)
    }

    /// Those whose time is over.
    pub(super) fn due(&mut self, now: Instant) -> Vec<OwnerToken> {
        self.ends.range(..=(now, u64::MAX)).map(|(_, token)| *token).collect()
    }

    /// When to look next, which is noted.
    pub(super) fn next(&mut self) -> Option<Instant> {
        self.asleep_until = self.ends.first_key_value().map(|((end, _), _)| *end);
        self.asleep_until
    }

    /// Whether whoever removes them sleeps for too long.
    pub(super) fn is_overslept(&self) -> bool {
        let next = self.ends.first_key_value().map(|((end, _), _)| *end);
        next.is_some_and(|next| self.asleep_until.is_none_or(|until| next < until))
    }

    /// Those with entries in this session.
    pub(super) fn of_session(&self, session: u64) -> Vec<OwnerToken> {
        let of_it = self
            .by_token
            .iter()
            .filter(|(_, place)| place.made.as_ref().is_some_and(|made| made.session == session));
        of_it.map(|(token, _)| *token).collect()
    }

    /// Those who wait for any of these locks.
    pub(super) fn waiting_for(&self, keys: &[LockKey]) -> Vec<OwnerToken> {
        let waits = |place: &&Place| {
            matches!(place.is, Is::Waiting { .. })
                && place.claim.keys().iter().any(|key| keys.contains(key))
        };
        self.by_token.values().filter(waits).map(|place| place.claim.token()).collect()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// What is to be removed.
#[derive(Debug)]
pub(super) struct Leaver {
    pub(super) claim: Arc<Claim>,
    made: Option<Arc<Made>>,
    pub(super) held: bool,
}

impl Leaver {
    pub(super) fn entries(&self) -> Held<'_> {
        match &self.made {
            Some(made) => made.of(&self.claim),
            None => Held {
                keys: self.claim.keys(),
                token: self.claim.token(),
                session: 0,
                entries: &[],
            },
        }
    }
}

impl Made {
    pub(super) fn of<'a>(&'a self, claim: &'a Claim) -> Held<'a> {
        Held {
            keys: claim.keys(),
            token: claim.token(),
            session: self.session,
            entries: &self.entries,
        }
    }
}
