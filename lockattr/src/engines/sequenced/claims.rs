//! The claims of a store that have entries, or may have some, and the end of each lease. No I/O,
//! and no clock of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::claim_record::{ClaimRecord, MadeEntries, NoTurn, PendingRemoval, Phase, PriorState};
use crate::store::{Claim, LockKey, MAX_RECHECK, OwnerToken, Waiting};

/// The claims, by their tokens.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_token: HashMap<OwnerToken, ClaimRecord>,
    /// When each claim is removed, if it is still there.
    ends: BTreeMap<(Instant, u64), OwnerToken>,
    last: u64,
    /// When the timer wakes next.
    next_wake: Option<Instant>,
}

impl Claims {
    /// Notes that the claim asks at `now`. Returns what was known about it.
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
            // The lease begins with the reply. If the claim's process never comes back, it ends
            // then.
            _ => self.set_end(token, Some(now + ttl + MAX_RECHECK)),
        }
        match made {
            Some(made) => PriorState::HasEntries(made),
            None if again => PriorState::Requested,
            None => PriorState::New,
        }
    }

    /// Makes a claim that has lost `made` ask as a new one; `false` if its state has changed.
    pub(super) fn restart_acquire(
        &mut self,
        claim: &Arc<Claim>,
        made: &Arc<MadeEntries>,
        ttl: Duration,
        now: Instant,
    ) -> bool {
        let token = claim.token();
        let is_current = |record: &ClaimRecord| {
            record.has(made) && !matches!(record.phase, Phase::Leaving { .. })
        };
        if self.by_token.get(&token).is_some_and(|record| !is_current(record)) {
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
            phase: Phase::Acquiring,
            made: None,
            task: None,
            ends: None,
        })
    }

    pub(super) fn get(&mut self, token: OwnerToken) -> Option<&mut ClaimRecord> {
        self.by_token.get_mut(&token)
    }

    /// Records the entries that a request made; `false` if the claim is gone or being removed.
    pub(super) fn record_entries(&mut self, token: OwnerToken, made: &Arc<MadeEntries>) -> bool {
        match self.by_token.get_mut(&token) {
            Some(record) if !matches!(record.phase, Phase::Leaving { .. }) => {
                record.made = Some(made.clone());
                true
            }
            _ => false,
        }
    }

    /// Marks the claim as the holder of its locks, as learned at `now`; `false` if it is being
    /// removed or its session is over.
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

    /// Queues a claim whose turn has not come, by queues that were read before `now`. It then waits
    /// without a time limit. If it does not wait, it is removed, unless it was queued before. A
    /// grant that came since stays.
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
            (Phase::Acquiring, Waiting::Not) => {
                self.begin_removal(token, now).map_or(NoTurn::Gone, NoTurn::Remove)
            }
            (Phase::Acquiring | Phase::Waiting { .. }, _) => {
                let notify_only = matches!(waiting, Waiting::Told { .. });
                record.phase = Phase::Waiting { notify_only };
                self.set_end(token, None);
                NoTurn::Queued
            }
        }
    }

    /// Begins to remove the claim at `now`. Returns what to remove; `None` if there is certainly
    /// nothing.
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
        // In case no process completes the removal.
        self.set_end(token, Some(now + ttl));
        Some(pending)
    }

    /// The same for a claim whose entries came too late: its removal began, or ended, without them.
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

    /// Handles the reply to this removal: the claim is gone, or is removed `again` at that time.
    pub(super) fn finish_removal(&mut self, pending: &PendingRemoval, retry_at: Option<Instant>) {
        let (token, removal) = (pending.claim.token(), pending.removal);
        let last = |record: &ClaimRecord| match record.phase {
            Phase::Leaving { removal, .. } => Some(removal),
            _ => None,
        };
        // Else there is a later removal, or the claim asks anew because its session is over.
        if self.by_token.get(&token).and_then(last) == Some(removal) {
            match retry_at {
                None => drop(self.remove(token)),
                Some(_) => self.set_end(token, retry_at),
            }
        }
    }

    /// Handles a claim of whose entries some were missing at `now`. Returns whether the others must
    /// be removed too, which is then due.
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

    /// Forgets a claim whose request was not sent.
    pub(super) fn acquire_not_sent(&mut self, token: OwnerToken) {
        if self.by_token.get(&token).is_some_and(|record| record.phase == Phase::Acquiring) {
            self.remove(token);
        }
    }

    /// Forgets the claim.
    pub(super) fn remove(&mut self, token: OwnerToken) -> Option<ClaimRecord> {
        self.set_end(token, None);
        self.by_token.remove(&token)
    }

    /// Extends the lease to `end` at least.
    pub(super) fn extend_to(&mut self, token: OwnerToken, end: Instant) {
        let known = self.end_of(token);
        self.set_end(token, Some(known.map_or(end, |known| known.max(end))));
    }

    /// Sets when the claim is removed, if it is still there then.
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

    /// When the claim's lease ends.
    pub(super) fn end_of(&self, token: OwnerToken) -> Option<Instant> {
        self.by_token.get(&token)?.ends.map(|(end, _)| end)
    }

    /// The claims to remove by now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<OwnerToken> {
        self.ends.range(..=(now, u64::MAX)).map(|(_, token)| *token).collect()
    }

    /// Returns when the timer must wake next, and notes it.
    pub(super) fn next(&mut self) -> Option<Instant> {
        self.next_wake = self.ends.first_key_value().map(|((end, _), _)| *end);
        self.next_wake
    }

    /// Whether the timer wakes too late.
    pub(super) fn needs_earlier_wake(&self) -> bool {
        let next = self.ends.first_key_value().map(|((end, _), _)| *end);
        next.is_some_and(|next| self.next_wake.is_none_or(|until| next < until))
    }

    /// The claims with entries in this session.
    pub(super) fn of_session(&self, session: u64) -> Vec<OwnerToken> {
        let of_it = self
            .by_token
            .iter()
            .filter(|(_, record)| record.made.as_ref().is_some_and(|made| made.session == session));
        of_it.map(|(token, _)| *token).collect()
    }

    /// The claims that wait for any of these locks.
    pub(super) fn waiting_for(&self, keys: &[LockKey]) -> Vec<OwnerToken> {
        let is_waiting = |record: &&ClaimRecord| {
            matches!(record.phase, Phase::Waiting { .. })
                && record.claim.keys().iter().any(|key| keys.contains(key))
        };
        self.by_token.values().filter(is_waiting).map(|record| record.claim.token()).collect()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_token.is_empty() && self.ends.is_empty()
    }

    /// Forgets all claims.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
