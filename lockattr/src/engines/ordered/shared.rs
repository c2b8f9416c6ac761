//! What a store and its tasks work on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::ensemble::{Ensemble, Entry};
use super::place::{Is, Leaver, Made, Task};
use super::places::Places;
use super::turns::{connection_for, served};
use super::{TRY_AGAIN, value};
use crate::Holder;
use crate::store::{Claim, LockKey, MAX_RECHECK, OwnerToken, StoreError, Subscriber, Subscribers};

#[derive(Debug)]
pub(super) struct Shared<E> {
    pub(super) ensemble: E,
    pub(super) subscribers: Subscribers,
    places: Mutex<Places>,
    /// Signalled when a lease ends sooner than was known.
    sooner: Notify,
    /// What ends leases.
    timer: Mutex<Option<Task>>,
    /// What waits for the end of the session that there is.
    session: Mutex<Option<(u64, Task)>>,
    /// The last session that a majority is known to have had, and the instant before it was asked.
    proved: Mutex<Option<(u64, Instant)>>,
}

/// The lines of a claim.
pub(super) type Lines = Vec<Vec<Entry>>;

impl<E: Ensemble> Shared<E> {
    pub(super) fn new(ensemble: E) -> Self {
        let (subscribers, places, sooner) = Default::default();
        let (timer, session, proved) = Default::default();
        Self { ensemble, subscribers, places, sooner, timer, session, proved }
    }

    pub(super) fn places(&self) -> MutexGuard<'_, Places> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn subscriber(&self, claim: &Claim) -> Option<Arc<Subscriber>> {
        self.subscribers.get(claim.token().subscriber())
    }

    /// Runs this where the session lives.
    pub(super) fn spawn(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Task, StoreError> {
        Ok(Task::new(self.ensemble.thread().handle()?.spawn(work).abort_handle()))
    }

    /// The lines of a claim that has entries, and whether these are all there still. The two are
    /// asked for in one trip: who is first in line by any server's reckoning is, as what went never
    /// comes back; that its session lives, only a majority can say.
    pub(super) async fn look(
        &self,
        claim: &Claim,
        made: &Made,
    ) -> Result<Option<Lines>, StoreError> {
        let (held, asked) = ([made.of(claim)], Instant::now());
        let confirmed = self.ensemble.confirm(&held);
        let (mut confirmed, lines) = join(confirmed, self.lines(claim)).await;
        match confirmed.pop() {
            Some(Ok(true)) => {
                self.proves(made.session, asked);
                lines.map(Some)
            }
            Some(Ok(false)) => Ok(None),
            Some(Err(error)) => Err(error),
            None => Err(StoreError::new("the store gave no answer")),
        }
    }

    /// The same for one whose turn may have come; and since when its lease would run. If the session
    /// was proved alive a moment ago, on whatever occasion, that is a proof for this claim as well,
    /// and reading is enough: a hand-over then needs no majority, and the lease is that much older.
    pub(super) async fn look_for_turn(
        &self,
        claim: &Claim,
        made: &Made,
    ) -> Result<(Option<Lines>, Instant), StoreError> {
        let now = Instant::now();
        let ttl = self.places().get(claim.token()).map_or(Duration::ZERO, |place| place.ttl);
        let proved = *self.proved.lock().unwrap_or_else(PoisonError::into_inner);
        match proved.filter(|(session, at)| *session == made.session && now < *at + ttl / 4) {
            Some((_, at)) => Ok((Some(self.lines(claim).await?), at)),
            None => Ok((self.look(claim, made).await?, now)),
        }
    }

    /// A majority had this session after `asked`.
    pub(super) fn proves(&self, session: u64, asked: Instant) {
        let mut proved = self.proved.lock().unwrap_or_else(PoisonError::into_inner);
        if proved.is_none_or(|(last, at)| last != session || at < asked) {
            *proved = Some((session, asked));
        }
    }

    async fn lines(&self, claim: &Claim) -> Result<Lines, StoreError> {
        let lines = join_all(claim.keys().iter().map(|key| self.ensemble.line(key))).await;
        lines.into_iter().collect()
    }

    /// Who has the lock of this line.
    pub(super) async fn holder(
        &self,
        key: &LockKey,
        line: &[Entry],
    ) -> Result<Option<Holder>, StoreError> {
        for entry in &line[..served(line)] {
            if let Some((holder, has_all)) = self.known(entry.token) {
                if has_all || !entry.several {
                    return Ok(Some(holder));
                }
                continue;
            }
            let Some(written) = self.ensemble.value(key, entry).await? else { continue };
            let value = written.value;
            if !entry.several || self.has_its_turn_elsewhere(&value, entry.token).await? {
                return Ok(Some(value::holder(&value)));
            }
        }
        Ok(None)
    }

    /// A claim of this store, and whether it has all its locks.
    pub(super) fn known(&self, token: OwnerToken) -> Option<(Holder, bool)> {
        let mut places = self.places();
        let end = places.end_of(token);
        let place = places.get(token)?;
        let holds = place.is == Is::Holding;
        // One whose turn has come, but who was not told yet.
        let left = end.map_or(place.ttl, |end| end.saturating_duration_since(Instant::now()));
        Some((Holder::from_value(place.claim.value(), Some(left)), holds))
    }

    pub(super) async fn has_its_turn_elsewhere(
        &self,
        value: &str,
        token: OwnerToken,
    ) -> Result<bool, StoreError> {
        let keys = value::keys(value);
        for line in join_all(keys.iter().map(|key| self.ensemble.line(key))).await {
            let line = line?;
            if connection_for(&line, token).is_none_or(|nth| nth >= served(&line)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// After how long a claim in line asks again if it hears nothing: when the first of those before
    /// it has to go, as far as that is known here.
    pub(super) fn look_again(&self, claim: &Claim, lines: &Lines) -> Duration {
        let (now, mut places) = (Instant::now(), self.places());
        let before = lines
            .iter()
            .flat_map(|line| &line[..connection_for(line, claim.token()).unwrap_or_default()]);
        let end = |entry: &Entry| {
            let holds = places.get(entry.token).is_some_and(|place| place.is == Is::Holding);
            places.end_of(entry.token).filter(|_| holds)
        };
        let ends = before.filter_map(end).min();
        let left = ends.map_or(MAX_RECHECK, |ends| ends.saturating_duration_since(now));
        left.clamp(Duration::from_millis(1), MAX_RECHECK)
    }

    /// Sees to it that leases end by themselves.
    pub(super) fn time(self: &Arc<Self>) -> Result<(), StoreError> {
        {
            let mut timer = self.timer();
            if timer.is_none() {
                *timer = Some(self.spawn(self.clone().end_leases())?);
            }
        }
        if self.places().is_overslept() {
            self.sooner.notify_one();
        }
        Ok(())
    }

    async fn end_leases(self: Arc<Self>) {
        loop {
            let now = Instant::now();
            let (leavers, next) = {
                let mut places = self.places();
                let due = places.due(now);
                let leavers: Vec<_> =
                    due.into_iter().filter_map(|token| places.leaves(token, now)).collect();
                (leavers, places.next())
            };
            if !leavers.is_empty() {
                let shared = self.clone();
                // Not waited for: others end meanwhile.
                tokio::spawn(async move { shared.end(leavers).await });
            }
            tokio::select! {
                () = self.sooner.notified() => {}
                () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
            }
        }
    }

    /// Removes those whose time is over, and tries again if it must.
    pub(super) async fn end(self: &Arc<Self>, leavers: Vec<Leaver>) {
        let answers = self.leave(&leavers).await;
        for (leaver, answer) in leavers.iter().zip(answers) {
            if let Err(error) = answer {
                let key = leaver.claim.key().as_str();
                tracing::debug!(key, %error, "a lease could not be ended; trying again");
                self.leaves_again(leaver);
            }
        }
    }

    /// Its removal has failed, and is tried again soon.
    pub(super) fn leaves_again(self: &Arc<Self>, leaver: &Leaver) {
        self.places().left(leaver, Some(Instant::now() + TRY_AGAIN));
        // If there is nothing that could end it, it ends with the session.
        let _ended_soon = self.time();
    }

    /// Removes these claims; whether each had its locks until then.
    pub(super) async fn leave(
        self: &Arc<Self>,
        leavers: &[Leaver],
    ) -> Vec<Result<bool, StoreError>> {
        // What fails, or is given up on the way, has an end now that the timer may not know of.
        let _ended_in_time = self.time();
        let entries: Vec<_> = leavers.iter().map(Leaver::entries).collect();
        let answers = self.ensemble.leave(&entries).await;
        let mut places = self.places();
        leavers
            .iter()
            .zip(answers)
            .map(|(leaver, answer)| {
                let there = answer?;
                places.left(leaver, None);
                Ok(there && leaver.held)
            })
            .collect()
    }

    /// Tells those whose entries go with this session when it is over.
    pub(super) fn watch_session(self: &Arc<Self>, session: u64) -> Result<(), StoreError> {
        let mut watched = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.as_ref().is_some_and(|(known, _)| *known == session) {
            return Ok(());
        }
        let shared = self.clone();
        let task = self.spawn(async move {
            shared.ensemble.ended(session).await;
            shared.session_ended(session);
        })?;
        if let Some((_, last)) = watched.replace((session, task)) {
            // It may have to tell of the end of the last one yet.
            last.let_go();
        }
        Ok(())
    }

    fn session_ended(&self, session: u64) {
        let over: Vec<_> = {
            let mut places = self.places();
            let tokens = places.of_session(session);
            tokens.into_iter().filter_map(|token| places.remove(token)).collect()
        };
        // Not while the places are locked: whoever is told may want them.
        for place in over {
            let Some(subscriber) = self.subscriber(&place.claim) else { continue };
            let token = place.claim.token();
            match place.is {
                Is::Holding => subscriber.lost(token),
                _ => subscriber.ask_again(token, Instant::now()),
            }
        }
    }

    /// Nothing goes on any more: the session ends when nobody needs it.
    pub(super) fn stop(&self) {
        self.places().clear();
        drop(self.session.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(self.timer().take());
    }

    fn timer(&self) -> MutexGuard<'_, Option<Task>> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
