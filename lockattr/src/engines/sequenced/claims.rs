//! The claims of a store that have entries, or may have some, and when each lease ends. No I/O, and
//! no clock of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::claim_record::{ClaimRecord, MadeEntries, NoTurn, PendingRemoval, Phase, PriorState};
use crate::store::{Claim, LockKey, MAX_RECHECK, OwnerToken, Waiting};

/// The places, by the tokens of their claims.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_token: HashMap<OwnerToken, ClaimRecord>,
    /// When what is still there by then is removed.
    ends: BTreeMap<(Instant, u64), OwnerToken>,
    last: u64,
    /// When the process that removes it looks next.
    next_wake: Option<Instant>,
}

impl Claims {
    /// The claim is about to ask at `now`: what is known of it already.
    pub(super) fn begin_acquire(
        &mut self,
        claim: &Arc<Claim>,
        ttl: Duration,
        now: Instant,
    ) -> PriorState {
        let token = claim.token();
        let again = self.by_token.contains_key(&token);
        let record = self.record(claim, ttl);
        if matches!(record.phase, Phase::Leaving { .. }) {
            return PriorState::Leaving;
        }
        record.ttl = ttl;
        let made = record.made.clone();
        match record.phase {
            Phase::Holding => self.extend_to(token, now + ttl),
            Phase::Waiting { .. } => {}
            // Its lease begins with the answer. Should no process come back for it, it ends then.
            _ => self.set_end(token, Some(now + ttl + MAX_RECHECK)),
        }
        match made {
            Some(made) => PriorState::HasEntries(made),
            None if again => PriorState::Asked,
            None => PriorState::New,
        }
    }

    /// A claim that has lost `made` comes anew; `false` if something else has become of it.
    pub(super) fn restart_acquire(
        &mut self,
        claim: &Arc<Claim>,
        made: &Arc<MadeEntries>,
        ttl: Duration,
        now: Instant,
    ) -> bool {
        let token = claim.token();
        let stands = |record: &ClaimRecord| {
            record.has(made) && !matches!(record.phase, Phase::Leaving { .. })
        };
        if self.by_token.get(&token).is_some_and(|record| !stands(record)) {
            return false;
        }
        self.remove(token);
        self.begin_acquire(claim, ttl, now);
        true
    }

    fn record(&mut self, claim: &Arc<Claim>, ttl: Duration) -> &mut ClaimRecord {
        self.by_token.entry(claim.token()).or_insert_with(|| ClaimRecord {
            claim: claim.clone(),
            ttl,
            phase: Phase::Asking,
            made: None,
            task: None,
            ends: None,
        })
    }

    pub(super) fn get(&mut self, token: OwnerToken) -> Option<&mut ClaimRecord> {
        self.by_token.get_mut(&token)
    }

    /// This is what became of its question; `false` if it does not want it any more.
    pub(super) fn record_entries(&mut self, token: OwnerToken, made: &Arc<MadeEntries>) -> bool {
        match self.by_token.get_mut(&token) {
            Some(record) if !matches!(record.phase, Phase::Leaving { .. }) => {
                record.made = Some(made.clone());
                true
            }
            _ => false,
        }
    }

    /// The claim has its locks, as was heard at `now`; `false` if it does not want them any more, or
    /// its session is over.
    pub(super) fn mark_held(
        &mut self,
        token: OwnerToken,
        made: &Arc<MadeEntries>,
        now: Instant,
    ) -> bool {
        let Some(record) = self.by_token.get_mut(&token) else { return false };
        if !record.has(made) || matches!(record.phase, Phase::Leaving { .. }) {
            return false;
        }
        let held = std::mem::replace(&mut record.phase, Phase::Holding) == Phase::Holding;
        record.task = None;
        let ends = now + record.ttl;
        match held {
            true => self.extend_to(token, ends),
            false => self.set_end(token, Some(ends)),
        }
        true
    }

    /// The claim has not its turn, by lines that were read before `now`: it waits in the queue from now
    /// on, for as long as it likes; or goes, unless it did stand there before. Its turn may have come
    /// since, and is not taken back then.
    pub(super) fn queue_or_remove(
        &mut self,
        token: OwnerToken,
        made: &Arc<MadeEntries>,
        waiting: Waiting,
        now: Instant,
    ) -> NoTurn {
        let Some(record) = self.by_token.get_mut(&token).filter(|record| record.has(made)) else {
            return NoTurn::Gone;
        };
        match (record.phase, waiting) {
            (Phase::Leaving { .. }, _) => NoTurn::Gone,
            (Phase::Holding, _) => NoTurn::Granted,
            (Phase::Waiting { .. }, Waiting::Not) => NoTurn::Queued,
            (Phase::Asking, Waiting::Not) => {
                self.begin_removal(token, now).map_or(NoTurn::Gone, NoTurn::Remove)
            }
            (Phase::Asking | Phase::Waiting { .. }, _) => {
                let told = matches!(waiting, Waiting::Told { .. });
                record.phase = Phase::Waiting { told };
                self.set_end(token, None);
                NoTurn::Queued
            }
        }
    }

    /// The claim is about to be removed at `now`: what is to be removed, or nothing if there
    /// certainly is nothing.
    pub(super) fn begin_removal(
        &mut self,
        token: OwnerToken,
        now: Instant,
    ) -> Option<PendingRemoval> {
        let record = self.by_token.get_mut(&token)?;
        self.last += 1;
        let (held, removal) =
            (matches!(record.phase, Phase::Holding | Phase::Leaving { held: true, .. }), self.last);
        record.phase = Phase::Leaving { held, removal };
        record.task = None;
        let pending = PendingRemoval {
            claim: record.claim.clone(),
            made: record.made.clone(),
            held,
            removal,
        };
        let ttl = record.ttl;
        // Should no process come back for it.
        self.set_end(token, Some(now + ttl));
        Some(pending)
    }

    /// The same for one whose entries came too late: it was removed, or is being removed, without
    /// what was made.
    pub(super) fn undo_late_entries(
        &mut self,
        claim: &Arc<Claim>,
        made: &Arc<MadeEntries>,
        ttl: Duration,
        now: Instant,
    ) -> Option<PendingRemoval> {
        self.record(claim, ttl).made = Some(made.clone());
        self.begin_removal(claim.token(), now)
    }

    /// This removal was answered: there is nothing any more, or it is to be tried `again`.
    pub(super) fn removal_answered(&mut self, pending: &PendingRemoval, again: Option<Instant>) {
        let (token, removal) = (pending.claim.token(), pending.removal);
        let last = |record: &ClaimRecord| match record.phase {
            Phase::Leaving { removal, .. } => Some(removal),
            _ => None,
        };
        // Else there is a later one, or the claim asks anew since its session is over.
        if self.by_token.get(&token).and_then(last) == Some(removal) {
            match again {
                None => drop(self.remove(token)),
                Some(_) => self.set_end(token, again),
            }
        }
    }

    /// Not all of its entries were there any more at `now`; whether the others have to go too, which
    /// is then due.
    pub(super) fn entries_lost(&mut self, token: OwnerToken, now: Instant) -> bool {
        match self.by_token.get(&token).map(|record| record.claim.keys().len()) {
            Some(2..) => {
                self.begin_removal(token, now);
                self.set_end(token, Some(now));
                true
            }
            _ => {
                self.remove(token);
                false
            }
        }
    }

    /// Its question was not sent.
    pub(super) fn acquire_not_sent(&mut self, token: OwnerToken) {
        if self.by_token.get(&token).is_some_and(|record| record.phase == Phase::Asking) {
            self.remove(token);
        }
    }

    /// It is gone.
    pub(super) fn remove(&mut self, token: OwnerToken) -> Option<ClaimRecord> {
        self.set_end(token, None);
        self.by_token.remove(&token)
    }

    /// Its lease runs until `end` at least.
    pub(super) fn extend_to(&mut self, token: OwnerToken, end: Instant) {
        let known = self.end_of(token);
        self.set_end(token, Some(known.map_or(end, |known| known.max(end))));
    }

    /// It is removed at `end`, if then.
    pub(super) fn set_end(&mut self, token: OwnerToken, end: Option<Instant>) {
        let Some(record) = self.by_token.get_mut(&token) else { return };
        if let Some(was) = record.ends.take() {
            self.ends.remove(&was);
        }
        if let Some(end) = end {
            self.last += 1;
            record.ends = Some((end, self.last));
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
        self.next_wake = self.ends.first_key_value().map(|((end, _), _)| *end);
        self.next_wake
    }

    /// Whether the process that removes them sleeps for too long.
    pub(super) fn needs_earlier_wake(&self) -> bool {
        let next = self.ends.first_key_value().map(|((end, _), _)| *end);
        next.is_some_and(|next| self.next_wake.is_none_or(|until| next < until))
    }

    /// Those with entries in this session.
    pub(super) fn of_session(&self, session: u64) -> Vec<OwnerToken> {
        let of_it = self
            .by_token
            .iter()
            .filter(|(_, record)| record.made.as_ref().is_some_and(|made| made.session == session));
        of_it.map(|(token, _)| *token).collect()
    }

    /// Those who wait for any of these locks.
    pub(super) fn waiting_for(&self, keys: &[LockKey]) -> Vec<OwnerToken> {
        let waits = |record: &&ClaimRecord| {
            matches!(record.phase, Phase::Waiting { .. })
                && record.claim.keys().iter().any(|key| keys.contains(key))
        };
        self.by_token.values().filter(waits).map(|record| record.claim.token()).collect()
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
