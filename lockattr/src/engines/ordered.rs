//! Locks that are lines of entries, in servers that agree on the order of things: ZooKeeper and etcd.
//!
//! There is nobody who grants: whose turn it is is read off the line (`turns.rs`), and who waits
//! watches the one before. A claim for several keys enters all lines in one step, and has its locks
//! when it has its turn in each; so nobody is overtaken. The entries hang on a session of the store,
//! which the ensemble's own client keeps alive; what a lease is shorter than the session, the store
//! ends itself (`shared.rs`), as long as this process lives.

mod delegate;
mod ensemble;
#[cfg(fuzzing)]
pub(super) mod fuzzed;
mod place;
mod places;
mod shared;
mod survey;
#[cfg(test)]
mod tests;
mod thread;
mod turns;
mod value;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, OwnerToken, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError, Subscriber, Waiting,
};
use crate::{FencingToken, HeldLock, Holder};
pub(crate) use delegate::ordered_store;
pub(crate) use ensemble::{Ensemble, Entered, Entry, Held, Line, NewEntry, Written};
use place::{Is, Known, Leaver, Made, Stands, Task};
use shared::{Lines, Shared};
pub(crate) use thread::{Stay, Thread};
pub(crate) use value::written;
use wait::{has_its_turn, hear_of_others, others_wait, wait};

/// After how long an entry is removed again whose removal got no answer.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// What a fencing token has room for.
const GREATEST_NUMBER: u64 = 1 << 53;

/// A store over one ensemble.
#[derive(Debug)]
pub(crate) struct OrderedStore<E: Ensemble> {
    shared: Arc<Shared<E>>,
}

impl<E: Ensemble> OrderedStore<E> {
    pub(crate) fn new(ensemble: E) -> Self {
        Self { shared: Arc::new(Shared::new(ensemble)) }
    }

    async fn ask(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, .. } = asked;
        let (shared, since, token) = (&self.shared, Instant::now(), claim.token());
        let known = shared.places().asks(claim, *ttl, since);
        shared.time()?;
        let again = match known {
            // What removes it may find anything that it makes now.
            Known::Leaves => return Err(StoreError::new("it is being given back")),
            Known::Made(made) => {
                let answer = self.ask_again(asked, &made, since).await;
                if let Some(answer) = answer.map_err(StoreError::sent)? {
                    return Ok(answer);
                }
                true
            }
            Known::Asked => true,
            Known::New => false,
        };
        let value = written(claim, *ttl);
        let (keys, sharing) = (claim.keys(), claim.sharing());
        let entry = NewEntry { keys, token, sharing, value: &value };
        let entered = shared.ensemble.enter(&entry, again).await.inspect_err(|error| {
            if error.is_not_sent() && !again {
                shared.places().asked_nothing(token);
            }
        })?;
        // There is something to undo, whatever cannot be sent from here on.
        self.entered(asked, entered, since).await.map_err(StoreError::sent)
    }

    /// The answer to a claim that has entries; none if it has lost one, and comes anew, to the end of
    /// the line.
    async fn ask_again(
        &self,
        asked: &AcquireRequest,
        made: &Arc<Made>,
        since: Instant,
    ) -> Result<Option<AcquireOutcome>, StoreError> {
        let (shared, claim) = (&self.shared, &asked.claim);
        if let Some(lines) = shared.look(claim, made).await? {
            return self.settle(asked, made, lines, since).await.map(Some);
        }
        if claim.keys().len() > 1 {
            // It would wait for what is left of it.
            let left = shared.ensemble.leave(&[made.of(claim)]).await;
            left.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        match shared.places().asks_anew(claim, made, asked.ttl, since) {
            true => Ok(None),
            false => Err(StoreError::new("it was given back while it was asked")),
        }
    }

    /// The claim has entries since just now.
    async fn entered(
        &self,
        asked: &AcquireRequest,
        entered: Entered,
        since: Instant,
    ) -> Result<AcquireOutcome, StoreError> {
        let (shared, claim) = (&self.shared, &asked.claim);
        let token = claim.token();
        let Entered { session, number, lines } = entered;
        let own = |line: &Vec<Entry>| Some(line[turns::connection_for(line, token)?].clone());
        let entries: Option<Box<[_]>> = lines.iter().map(own).collect();
        let entries = entries.ok_or_else(|| StoreError::new("what was written is not there"))?;
        if number >= GREATEST_NUMBER {
            return Err(StoreError::new(format!(
                "it numbers what was written with {number}, and a fencing token has room for 53 bits"
            )));
        }
        let made = Arc::new(Made { session, number, entries });
        shared.proves(session, since);
        if !shared.places().made(token, &made) {
            // It took longer than the lease, which was ended meanwhile, and was made after that.
            let leaver = shared.places().undoes(claim, &made, asked.ttl, Instant::now());
            let undoing = shared.clone();
            shared.spawn(async move { undoing.end(Vec::from_iter(leaver)).await })?.let_go();
            return Err(StoreError::new("its answer took longer than the whole lease"));
        }
        shared.watch_session(session)?;
        self.settle(asked, &made, lines, since).await
    }

    /// What the lines say to a claim that stands in them.
    async fn settle(
        &self,
        asked: &AcquireRequest,
        made: &Arc<Made>,
        lines: Lines,
        since: Instant,
    ) -> Result<AcquireOutcome, StoreError> {
        let (shared, claim) = (&self.shared, &asked.claim);
        let token = claim.token();
        let turn = has_its_turn(claim, &lines)
            .ok_or_else(|| StoreError::new("what was written is not there any more"))?;
        if !turn {
            let stands = shared.places().has_to_wait(token, made, asked.waiting, since);
            match stands {
                Stands::InLine => {
                    let mut queued = None;
                    if asked.waiting != Waiting::Not {
                        queued = Some(shared.look_again(claim, &lines));
                        self.wait_for_its_turn(claim, made, &lines)?;
                    }
                    let holder = self.in_the_way(claim, &lines).await;
                    return Ok(AcquireOutcome::Held { holder, queued });
                }
                Stands::Leaves(leaver) => return self.refuse(claim, leaver, &lines).await,
                // The lines are older than that.
                Stands::Granted | Stands::Gone => {}
            }
        }
        if !shared.places().holds(token, made, Instant::now()) {
            return Err(StoreError::new("its session ended while it was asked"));
        }
        shared.time()?;
        let contended = others_wait(&lines);
        if !contended {
            hear_of_others(shared, claim, &lines);
        }
        let fencing = FencingToken::from_counter(made.number);
        Ok(AcquireOutcome::Acquired { fencing, contended })
    }

    /// The answer to a claim that only asked, and has to go.
    async fn refuse(
        &self,
        claim: &Claim,
        leaver: Leaver,
        lines: &Lines,
    ) -> Result<AcquireOutcome, StoreError> {
        let shared = &self.shared;
        let leaving = shared.leave(std::slice::from_ref(&leaver));
        let (left, holder) =
            futures_util::future::join(leaving, self.in_the_way(claim, lines)).await;
        if let Some(Err(error)) = left.into_iter().next() {
            // It may be asked again at any time.
            shared.leaves_again(&leaver);
            return Err(error);
        }
        Ok(AcquireOutcome::Held { holder, queued: None })
    }

    /// Has a task wait for the claim, unless one does.
    fn wait_for_its_turn(
        &self,
        claim: &Arc<Claim>,
        made: &Arc<Made>,
        lines: &Lines,
    ) -> Result<(), StoreError> {
        let shared = &self.shared;
        let waits = shared
            .places()
            .get(claim.token())
            .is_some_and(|place| place.task.as_ref().is_some_and(Task::goes_on));
        if !waits {
            let task = wait(shared.clone(), claim.clone(), made.clone(), lines.clone());
            let task = shared.spawn(task)?;
            if let Some(place) = shared.places().get(claim.token())
                && matches!(place.is, Is::Waiting { .. })
            {
                place.task = Some(task);
            }
        }
        Ok(())
    }

    /// Who holds where the claim has not its turn, if that can be said.
    async fn in_the_way(&self, claim: &Claim, lines: &Lines) -> Option<Box<Holder>> {
        for (key, line) in claim.keys().iter().zip(lines) {
            let nth = turns::connection_for(line, claim.token()).unwrap_or_default();
            if nth < turns::served(line) {
                continue;
            }
            if let Ok(Some(holder)) = self.shared.holder(key, line).await {
                return Some(Box::new(holder));
            }
        }
        None
    }

    async fn renew_all(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let (shared, now) = (&self.shared, Instant::now());
        let held: Vec<_> = {
            let mut places = shared.places();
            let mut held = |renewal: &RenewRequest| {
                let token = renewal.claim.token();
                let made = places.get(token).filter(|place| place.is == Is::Holding)?.made.clone();
                // Before the answer: it may come late, and the lease must not end meanwhile.
                places.lasts(token, now + renewal.ttl);
                made
            };
            renewals.iter().map(&mut held).collect()
        };
        let with = renewals.iter().zip(&held);
        let asked: Vec<_> =
            with.filter_map(|(it, made)| Some(made.as_ref()?.of(&it.claim))).collect();
        let mut answers = match asked.is_empty() {
            true => Vec::new(),
            false => shared.ensemble.confirm(&asked).await,
        }
        .into_iter();
        let (mut places, mut lost) = (shared.places(), false);
        let mut settle = |token: OwnerToken, made: &Option<Arc<Made>>| {
            if made.is_none() {
                return Ok(RenewOutcome::NotHeld);
            }
            let there = answers
                .next()
                .unwrap_or_else(|| Err(StoreError::new("the store gave no answer")))?;
            if let Some(made) = made.as_ref().filter(|_| there) {
                shared.proves(made.session, now);
            }
            // It may have ended meanwhile.
            let holds = places.get(token).is_some_and(|place| place.is == Is::Holding);
            if holds && !there {
                lost |= places.lost(token, now);
            }
            Ok(if holds && there { RenewOutcome::Renewed } else { RenewOutcome::NotHeld })
        };
        let with = renewals.iter().zip(&held);
        let answers = with
            .map(|(it, made)| {
                let answer = settle(it.claim.token(), made)?;
                if answer == RenewOutcome::Renewed && is_behind(it, made.as_deref()) {
                    return Err(StoreError::new("its servers count by themselves, and not so far"));
                }
                Ok(answer)
            })
            .collect();
        drop(places);
        if lost {
            // If there is nothing that could end them, they end with the session.
            let _ended_soon = shared.time();
        }
        answers
    }

    async fn release_all(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let (shared, now) = (&self.shared, Instant::now());
        let (mut stays, mut leavers) = (Vec::new(), Vec::<Leaver>::new());
        let what: Vec<_> = {
            let mut places = shared.places();
            let mut what = |release| {
                let release: &ReleaseRequest = release;
                let token = release.claim.token();
                let holds = places.get(token).filter(|place| place.is == Is::Holding);
                let made = holds.and_then(|place| place.made.clone());
                match made {
                    Some(made) if !release.after.is_zero() => {
                        stays.push((release, made));
                        What::Stays
                    }
                    _ => match places.leaves(token, now) {
                        Some(leaver) => {
                            leavers.push(leaver);
                            What::Leaves
                        }
                        None => What::Nothing,
                    },
                }
            };
            releases.iter().map(&mut what).collect()
        };
        let (stayed, left) = futures_util::future::join(
            async { if stays.is_empty() { Vec::new() } else { self.stay(&stays, now).await } },
            async { if leavers.is_empty() { Vec::new() } else { shared.leave(&leavers).await } },
        )
        .await;
        let (mut stayed, mut left) = (stayed.into_iter(), left.into_iter());
        let answer = |what: &What| {
            let held = match what {
                What::Nothing => Some(Ok(false)),
                What::Stays => stayed.next(),
                What::Leaves => left.next(),
            };
            let held = held.unwrap_or_else(|| Err(StoreError::new("the store gave no answer")))?;
            Ok(if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld })
        };
        what.iter().map(answer).collect()
    }

    /// Lets locks be taken for a while still; whether each was.
    async fn stay(
        &self,
        stays: &[(&ReleaseRequest, Arc<Made>)],
        now: Instant,
    ) -> Vec<Result<bool, StoreError>> {
        let shared = &self.shared;
        let held: Vec<_> = stays.iter().map(|(release, made)| made.of(&release.claim)).collect();
        let answers = shared.ensemble.confirm(&held).await;
        let mut told = Vec::new();
        {
            let mut places = shared.places();
            for ((release, _), answer) in stays.iter().zip(&answers) {
                let (token, end) = (release.claim.token(), now + release.after);
                match answer {
                    Ok(true) => {
                        places.ends_at(token, Some(end));
                        let waiting = places.waiting_for(release.claim.keys());
                        told.extend(waiting.into_iter().map(|token| (token, end)));
                    }
                    // What is left of it is due at once.
                    Ok(false) => _ = places.lost(token, now),
                    Err(_) => {}
                }
            }
        }
        // Not while the places are locked: whoever is told may want them.
        for (token, end) in told {
            if let Some(subscriber) = shared.subscribers.get(token.subscriber()) {
                subscriber.ask_again(token, end);
            }
        }
        match shared.time() {
            Ok(()) => answers,
            Err(error) => answers.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

/// Whether a later acquisition may get the number that this one has of another store: what is certain
/// is only that it gets a greater one than was given here.
fn is_behind(renewal: &RenewRequest, made: Option<&Made>) -> bool {
    let number = made.map(|made| FencingToken::from_counter(made.number));
    renewal.fence.is_some_and(|fence| number.is_none_or(|number| fence > number))
}

/// What a release comes to.
enum What {
    Nothing,
    Stays,
    Leaves,
}

impl<E: Ensemble> Store for OrderedStore<E> {
    async fn acquire(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.ask(asked).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.shared.subscribers.add(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.renew_all(renewals).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        self.release_all(releases).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let line = self.shared.ensemble.line(key).await?;
        self.shared.holder(key, &line).await
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        self.shared.held_locks(prefix).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        self.shared.force_release(key).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.shared.ensemble.ping().await
    }

    /// An entry ends with the session, of which at least a half may be leased.
    fn entry_lifetime(&self, _ttl: Duration) -> Duration {
        self.shared.ensemble.keeps_for() * 2
    }

    fn longest_ttl(&self) -> Duration {
        self.shared.ensemble.keeps_for()
    }

    fn answered_since(&self, _key: &LockKey, since: Instant) -> bool {
        self.shared.ensemble.answered_since(since)
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        self.shared.ensemble.refuses(claim)
    }
}

impl<E: Ensemble> Drop for OrderedStore<E> {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
