//! The claims of a store that have entries, or may have some, and when each lease ends. No I/O, and
//! no clock of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::place::{Is, Known, Leaver, Made, Place, Stands};
use crate::store::{Claim, LockKey, MAX_RECHECK, OwnerToken, Waiting};

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

impl Places {
    /// The claim is about to ask at `now`: what is known of it already.
    pub(super) fn asks(&mut self, claim: &Arc<Claim>, ttl: Duration, now: Instant) -> Known {
        let token = claim.token();
        let again = self.by_token.contains_key(&token);
        let place = self.place(claim, ttl);
        if matches!(place.is, Is::Leaving { .. }) {
            return Known::Leaves;
        }
        place.ttl = ttl;
        let made = place.made.clone();
        match place.is {
            Is::Holding => self.lasts(token, now + ttl),
            Is::Waiting { .. } => {}
            // Its lease begins with the answer. Should nobody come back for it, it ends then.
            _ => self.ends_at(token, Some(now + ttl + MAX_RECHECK)),
        }
        match made {
            Some(made) => Known::Made(made),
            None if again => Known::Asked,
            None => Known::New,
        }
    }

    /// A claim that has lost `made` comes anew; `false` if something else has become of it.
    pub(super) fn asks_anew(
        &mut self,
        claim: &Arc<Claim>,
        made: &Arc<Made>,
        ttl: Duration,
        now: Instant,
    ) -> bool {
        let token = claim.token();
        let stands = |place: &Place| place.has(made) && !matches!(place.is, Is::Leaving { .. });
        if self.by_token.get(&token).is_some_and(|place| !stands(place)) {
            return false;
        }
        self.remove(token);
        self.asks(claim, ttl, now);
        true
    }

    fn place(&mut self, claim: &Arc<Claim>, ttl: Duration) -> &mut Place {
        self.by_token.entry(claim.token()).or_insert_with(|| Place {
            claim: claim.clone(),
            ttl,
            is: Is::Asking,
            made: None,
            task: None,
            ends: None,
        })
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
        if !place.has(made) || matches!(place.is, Is::Leaving { .. }) {
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

    /// The claim has not its turn, by lines that were read before `now`: it stands in line from now
    /// on, for as long as it likes; or goes, unless it did stand there before. Its turn may have come
    /// since, and is not taken back then.
    pub(super) fn has_to_wait(
        &mut self,
        token: OwnerToken,
        made: &Arc<Made>,
        waiting: Waiting,
        now: Instant,
    ) -> Stands {
        let Some(place) = self.by_token.get_mut(&token).filter(|place| place.has(made)) else {
            return Stands::Gone;
        };
        match (place.is, waiting) {
            (Is::Leaving { .. }, _) => Stands::Gone,
            (Is::Holding, _) => Stands::Granted,
            (Is::Waiting { .. }, Waiting::Not) => Stands::InLine,
            (Is::Asking, Waiting::Not) => {
                self.leaves(token, now).map_or(Stands::Gone, Stands::Leaves)
            }
            (Is::Asking | Is::Waiting { .. }, _) => {
                let told = matches!(waiting, Waiting::Told { .. });
                place.is = Is::Waiting { told };
                self.ends_at(token, None);
                Stands::InLine
            }
        }
    }

    /// The claim is about to be removed at `now`: what is to be removed, or nothing if there
    /// certainly is nothing.
    pub(super) fn leaves(&mut self, token: OwnerToken, now: Instant) -> Option<Leaver> {
        let place = self.by_token.get_mut(&token)?;
        self.last += 1;
        let (held, removal) =
            (matches!(place.is, Is::Holding | Is::Leaving { held: true, .. }), self.last);
        place.is = Is::Leaving { held, removal };
        place.task = None;
        let leaver = Leaver { claim: place.claim.clone(), made: place.made.clone(), held, removal };
        let ttl = place.ttl;
        // Should nobody come back for it.
        self.ends_at(token, Some(now + ttl));
        Some(leaver)
    }

    /// The same for one whose entries came too late: it was removed, or is being removed, without
    /// what was made.
    pub(super) fn undoes(
        &mut self,
        claim: &Arc<Claim>,
        made: &Arc<Made>,
        ttl: Duration,
        now: Instant,
    ) -> Option<Leaver> {
        self.place(claim, ttl).made = Some(made.clone());
        self.leaves(claim.token(), now)
    }

    /// This removal was answered: there is nothing any more, or it is to be tried `again`.
    pub(super) fn left(&mut self, leaver: &Leaver, again: Option<Instant>) {
        let (token, removal) = (leaver.claim.token(), leaver.removal);
        let last = |place: &Place| match place.is {
            Is::Leaving { removal, .. } => Some(removal),
            _ => None,
        };
        // Else there is a later one, or the claim asks anew since its session is over.
        if self.by_token.get(&token).and_then(last) == Some(removal) {
            match again {
                None => drop(self.remove(token)),
                Some(_) => self.ends_at(token, again),
            }
        }
    }

    /// Not all of its entries were there any more at `now`; whether the others have to go too, which
    /// is then due.
    pub(super) fn lost(&mut self, token: OwnerToken, now: Instant) -> bool {
        match self.by_token.get(&token).map(|place| place.claim.keys().len()) {
            Some(2..) => {
                self.leaves(token, now);
                self.ends_at(token, Some(now));
                true
            }
            _ => {
                self.remove(token);
                false
            }
        }
    }

    /// Its question was not sent.
    pub(super) fn asked_nothing(&mut self, token: OwnerToken) {
        if self.by_token.get(&token).is_some_and(|place| place.is == Is::Asking) {
            self.remove(token);
        }
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

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_token.is_empty() && self.ends.is_empty()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
