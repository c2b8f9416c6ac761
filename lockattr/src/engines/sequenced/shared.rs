//! The state that a store and its tasks share.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::claim_record::{MadeEntries, PendingRemoval, Phase, Task};
use super::claims::Claims;
use super::contention::NewHolds;
use super::gate::{Gate, MAX_REMOVALS, Permit, Purpose};
use super::queue_order::{position_of, served};
use super::recipe::{Entry, EntryValue, LockRecipe};
use super::{RETRY_REMOVAL_AFTER, value};
use crate::Holder;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{Claim, LockKey, MAX_RECHECK, OwnerToken, StoreError, Subscriber, Subscribers};

#[derive(Debug)]
pub(super) struct Shared<E> {
    pub(super) recipe: E,
    gate: Gate,
    pub(super) new_holds: NewHolds,
    pub(super) subscribers: Subscribers,
    claims: Mutex<Claims>,
    /// Signalled when a lease ends sooner than the timer knows.
    wake_timer: Notify,
    /// Ends leases.
    timer: Mutex<Option<Task>>,
    /// Waits for the end of the current session.
    session: Mutex<Option<(u64, Task)>>,
    /// The last session that a majority confirmed, and the instant before that request was sent.
    proved: Mutex<Option<(u64, Instant)>>,
}

/// The queues of a claim, one for each of its keys.
pub(super) type ClaimQueues = Vec<Vec<Entry>>;

impl<E: LockRecipe> Shared<E> {
    pub(super) fn new(recipe: E) -> Self {
        let (gate, new_holds, subscribers, claims, wake_timer) = Default::default();
        let (timer, session, proved) = Default::default();
        Self { recipe, gate, new_holds, subscribers, claims, wake_timer, timer, session, proved }
    }

    pub(super) fn claims(&self) -> MutexGuard<'_, Claims> {
        // No panic can leave this half-changed, so a poisoned mutex is safe to use.
        self.claims.lock()
    }

    pub(super) fn subscriber(&self, claim: &Claim) -> Option<Arc<Subscriber>> {
        self.subscribers.get(claim.token().subscriber())
    }

    /// Returns once a request may be sent.
    ///
    /// # Errors
    ///
    /// If the connection is silent meanwhile. Nothing is sent then.
    pub(super) async fn admit(&self, purpose: Purpose, size: usize) -> Result<Permit, StoreError> {
        let admitted = self.recipe.unless_silent(self.gate.enter(purpose, size)).await;
        admitted.map_err(StoreError::not_sent)
    }

    /// Spawns a task on the runtime where the session lives.
    pub(super) fn spawn(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Task, StoreError> {
        Ok(Task::new(self.recipe.thread().handle()?.spawn(work).abort_handle()))
    }

    /// Returns the queues of a claim, if its entries are all still there. Both requests are sent at
    /// once. Any server's copy of a queue will do: a claim that is first in it is first, because a
    /// removed entry never comes back. Only a majority can confirm that the session lives.
    pub(super) async fn confirm_and_read(
        &self,
        claim: &Claim,
        made: &MadeEntries,
    ) -> Result<Option<ClaimQueues>, StoreError> {
        let (held, sent_at) = ([made.of(claim)], Instant::now());
        let confirmed = self.recipe.confirm(&held);
        let (mut confirmed, queues) = join(confirmed, self.queues(claim)).await;
        match confirmed.pop() {
            Some(Ok(true)) => {
                self.note_proof(made.session, sent_at);
                queues.map(Some)
            }
            Some(Ok(false)) => Ok(None),
            Some(Err(error)) => Err(error),
            None => Err(StoreError::new("the store sent no reply about this claim")),
        }
    }

    /// The same for a claim whose turn may have come; also returns when its lease would begin. If
    /// any request proved the session alive a moment ago, that proof serves this claim too, and
    /// reading the queues is enough. A hand-off then needs no majority, and the lease begins at
    /// that proof.
    pub(super) async fn check_turn(
        &self,
        claim: &Claim,
        made: &MadeEntries,
    ) -> Result<(Option<ClaimQueues>, Instant), StoreError> {
        let now = Instant::now();
        let ttl = self.claims().get(claim.token()).map_or(Duration::ZERO, |record| record.ttl);
        let proved = *self.proved.lock();
        match proved.filter(|(session, at)| *session == made.session && now < *at + ttl / 4) {
            Some((_, at)) => Ok((Some(self.queues(claim).await?), at)),
            None => Ok((self.confirm_and_read(claim, made).await?, now)),
        }
    }

    /// Notes that a majority confirmed this session after `sent_at`.
    pub(super) fn note_proof(&self, session: u64, sent_at: Instant) {
        let mut proved = self.proved.lock();
        if proved.is_none_or(|(last, at)| last != session || at < sent_at) {
            *proved = Some((session, sent_at));
        }
    }

    async fn queues(&self, claim: &Claim) -> Result<ClaimQueues, StoreError> {
        let queues = join_all(claim.keys().iter().map(|key| self.queue(key))).await;
        queues.into_iter().collect()
    }

    /// Reads a queue, in which a claim's turn may have come.
    async fn queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        let _permit = self.admit(Purpose::Release, 1).await?;
        self.recipe.queue(key).await
    }

    /// Returns the holder of this queue's lock.
    pub(super) async fn holder(
        &self,
        key: &LockKey,
        queue: &[Entry],
    ) -> Result<Option<Holder>, StoreError> {
        for entry in &queue[..served(queue)] {
            if let Some((holder, has_all)) = self.local_claim(entry.token) {
                if has_all || !entry.several {
                    return Ok(Some(holder));
                }
                continue;
            }
            let permit = self.admit(Purpose::Acquire, 1).await?;
            let written = self.recipe.value(key, entry).await?;
            drop(permit);
            let Some(EntryValue { value, .. }) = written else { continue };
            if !entry.several || self.has_its_turn_elsewhere(&value, entry.token).await? {
                return Ok(Some(value::holder(&value)));
            }
        }
        Ok(None)
    }

    /// Returns the holder of a claim of this store, and whether it has all its locks.
    pub(super) fn local_claim(&self, token: OwnerToken) -> Option<(Holder, bool)> {
        let mut claims = self.claims();
        let end = claims.end_of(token);
        let record = claims.get(token)?;
        let holds = record.phase == Phase::Holding;
        // Without an end, its turn may have come, but it was not notified yet.
        let left = end.map_or(record.ttl, |end| end.saturating_duration_since(Instant::now()));
        Some((Holder::from_value(record.claim.value(), Some(left)), holds))
    }

    pub(super) async fn has_its_turn_elsewhere(
        &self,
        value: &str,
        token: OwnerToken,
    ) -> Result<bool, StoreError> {
        let keys = value::keys(value);
        for queue in join_all(keys.iter().map(|key| self.queue(key))).await {
            let queue = queue?;
            if position_of(&queue, token).is_none_or(|nth| nth >= served(&queue)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// After how long a queued claim asks again without a notification: when the first lease before
    /// it ends, as far as this store knows.
    pub(super) fn recheck_after(&self, claim: &Claim, queues: &ClaimQueues) -> Duration {
        let (now, mut claims) = (Instant::now(), self.claims());
        let before = queues
            .iter()
            .flat_map(|queue| &queue[..position_of(queue, claim.token()).unwrap_or_default()]);
        let end = |entry: &Entry| {
            let holds =
                claims.get(entry.token).is_some_and(|record| record.phase == Phase::Holding);
            claims.end_of(entry.token).filter(|_| holds)
        };
        let ends = before.filter_map(end).min();
        let left = ends.map_or(MAX_RECHECK, |ends| ends.saturating_duration_since(now));
        left.clamp(Duration::from_millis(1), MAX_RECHECK)
    }

    /// Ensures that the timer runs, which ends leases.
    pub(super) fn ensure_timer(self: &Arc<Self>) -> Result<(), StoreError> {
        {
            let mut timer = self.timer();
            if timer.is_none() {
                *timer = Some(self.spawn(self.clone().end_leases())?);
            }
        }
        if self.claims().needs_earlier_wake() {
            self.wake_timer.notify_one();
        }
        Ok(())
    }

    async fn end_leases(self: Arc<Self>) {
        loop {
            let now = Instant::now();
            let (removals, next) = {
                let mut claims = self.claims();
                let due = claims.due(now);
                let removals: Vec<_> =
                    due.into_iter().filter_map(|token| claims.begin_removal(token, now)).collect();
                (removals, claims.next())
            };
            if !removals.is_empty() {
                let shared = self.clone();
                // Not awaited, so that other leases end in time.
                tokio::spawn(async move { shared.end(removals).await });
            }
            tokio::select! {
                () = self.wake_timer.notified() => {}
                () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
            }
        }
    }

    /// Removes claims whose lease is over, and retries if that fails.
    pub(super) async fn end(self: &Arc<Self>, removals: Vec<PendingRemoval>) {
        let outcomes = self.leave(&removals).await;
        for (pending, removed) in removals.iter().zip(outcomes) {
            if let Err(error) = removed {
                let key = pending.claim.key().as_str();
                tracing::debug!(
                    lockattr.key = key, error.message = %error,
                    "the entries of an expired claim could not be removed; retrying"
                );
                self.retry_removal(pending);
            }
        }
    }

    /// Schedules another try of a removal that failed.
    pub(super) fn retry_removal(self: &Arc<Self>, pending: &PendingRemoval) {
        self.claims().finish_removal(pending, Some(Instant::now() + RETRY_REMOVAL_AFTER));
        // If the timer cannot run, the entries end with the session.
        let _ended_soon = self.ensure_timer();
    }

    /// Removes these claims. Returns for each whether it held its locks until then.
    pub(super) async fn leave(
        self: &Arc<Self>,
        removals: &[PendingRemoval],
    ) -> Vec<Result<bool, StoreError>> {
        // A removal that fails or is dropped has an end now, which the timer may not know.
        let _ended_in_time = self.ensure_timer();
        let entries: Vec<_> = removals.iter().map(PendingRemoval::entries).collect();
        let batches = entries.chunks(MAX_REMOVALS).map(async |batch| {
            match self.admit(Purpose::Release, batch.len()).await {
                Ok(permit) => self.recipe.leave(batch, permit).await,
                Err(error) => vec![Err(error); batch.len()],
            }
        });
        let removed = join_all(batches).await.into_iter().flatten();
        let mut claims = self.claims();
        removals
            .iter()
            .zip(removed)
            .map(|(pending, removed)| {
                let there = removed?;
                claims.finish_removal(pending, None);
                Ok(there && pending.held)
            })
            .collect()
    }

    /// Notifies the claims of this session when it is over.
    pub(super) fn watch_session(self: &Arc<Self>, session: u64) -> Result<(), StoreError> {
        let mut watched = self.session.lock();
        if watched.as_ref().is_some_and(|(known, _)| *known == session) {
            return Ok(());
        }
        let shared = self.clone();
        let task = self.spawn(async move {
            shared.recipe.wait_until_ended(session).await;
            shared.session_ended(session);
        })?;
        if let Some((_, last)) = watched.replace((session, task)) {
            // It may still have to report the end of the last session.
            last.detach();
        }
        Ok(())
    }

    fn session_ended(&self, session: u64) {
        let over: Vec<_> = {
            let mut claims = self.claims();
            let tokens = claims.of_session(session);
            tokens.into_iter().filter_map(|token| claims.remove(token)).collect()
        };
        // After the mutex is released, because the subscriber may lock it.
        for record in over {
            let Some(subscriber) = self.subscriber(&record.claim) else { continue };
            let token = record.claim.token();
            match record.phase {
                Phase::Holding => subscriber.lost(token),
                _ => subscriber.ask_again(token, Instant::now()),
            }
        }
    }

    /// Stops all tasks. The session ends when nothing needs it any more.
    pub(super) fn stop(&self) {
        self.claims().clear();
        drop(self.session.lock().take());
        drop(self.timer().take());
    }

    fn timer(&self) -> MutexGuard<'_, Option<Task>> {
        self.timer.lock()
    }
}
