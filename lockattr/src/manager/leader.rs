//! Who leads, and in which term: what followers may ask.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::LockManager;
use super::acquire::shut_down;
use super::campaign::Seen;
use super::notes::TERMS;
use crate::lease::GrantedLease;
use crate::lock::key::LockKey;
use crate::lock::options::ResolvedOptions;
use crate::lock::term_word::TermWord;
use crate::store::{AcquireOutcome, AcquireRequest, Claim, ReleaseRequest, Sharing};
use crate::{Error, FencingToken, Holder, LockGuard};

/// How often a watch asks the store, unless a campaign of its process does.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// How soon it asks again for the number of a term that has just begun, and after a failure.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Who leads.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// assert!(manager.leader("scheduler").await?.is_none());
/// let seen = manager.lead("scheduler", LockOptions::new(), async |_term| {
///     manager.leader("scheduler").await
/// });
/// let leader = seen.await??.expect("this process leads");
/// assert_eq!(leader.holder.process, Some(std::process::id()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The holder of the lock.
    pub holder: Holder,
    /// The number of its term. `None` in the first moments of a term, for a lock that was not taken by
    /// [`lead`](LockManager::lead), with `lock=session`, and for a key of more than about 1,000 bytes.
    pub term: Option<FencingToken>,
}

impl Leader {
    /// Whether both are of one term, as far as it is known.
    fn is_same(&self, other: &Self) -> bool {
        self.term == other.term && self.holder.is_same(&other.holder)
    }
}

impl LockManager {
    /// Who leads now, and in which term: a report, out of date as soon as it is made.
    ///
    /// For followers: to forward a request to the leader, or to show who it is. Any holder of the lock counts
    /// as its leader; only one that [leads](Self::lead) has a term. There is no
    /// `is_leader() -> bool`, because the work that relied on its answer would go on when the answer no
    /// longer holds. The body of [`lead`](Self::lead) is the work of a leader.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store could not be reached; [`Error::InvalidKey`]. [`Error::InvalidOptions`] in a
    /// fork, and on a tokio runtime without timers.
    ///
    /// # Cancel safety
    ///
    /// Read-only; can be dropped at any time.
    ///
    /// [`Leader`] has an example.
    pub async fn leader(&self, key: impl AsRef<str>) -> Result<Option<Leader>, Error> {
        self.leader_of(&self.key(key.as_ref())?).await
    }

    async fn leader_of(&self, key: &LockKey) -> Result<Option<Leader>, Error> {
        // A watch that waited may be in a fork by now.
        self.shared.core.watchdog.check_here()?;
        let store = self.shared.core.store();
        let failed = |error: crate::store::StoreError| error.about(key.as_str());
        let Some(holder) = store.holder(key).await.map_err(failed)? else { return Ok(None) };
        let note = match self.term_note(key) {
            Some(note) => store.holder(&note).await.map_err(failed)?,
            None => None,
        };
        let term = note.and_then(|note| note.term_of(&holder));
        Ok(Some(Leader { holder, term }))
    }

    /// The name of the note with the leader's term. `None` if the name would be too long, and where no other process
    /// could read the note: a lock that only costs requests, and removing that of the last leader would end its
    /// session, with all its other locks.
    fn term_note(&self, key: &LockKey) -> Option<LockKey> {
        let is_read = self.shared.core.store().shows_values();
        is_read.then(|| LockKey::new(TERMS, key.name()).ok()).flatten()
    }

    /// Watches who leads.
    ///
    /// It asks the store every ten seconds. While this process waits to lead, it learns from the requests of
    /// its campaign instead, and sends its own only when the leader has changed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let campaign = manager.lead("scheduler", LockOptions::new(), async |_term| {
    ///     let mut watch = manager.watch_leader("scheduler")?;
    ///     watch.changed().await
    /// });
    /// let leader = campaign.await??.expect("this process leads");
    /// assert_eq!(leader.holder.process, Some(std::process::id()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_leader(&self, key: impl AsRef<str>) -> Result<LeaderWatch, Error> {
        let key = self.key(key.as_ref())?;
        let seen = self.shared.campaigns.watch(&key);
        let ask_at = Instant::now();
        Ok(LeaderWatch { manager: self.clone(), key, seen, last: None, ask_at, unanswered: false })
    }
}

/// Watches who leads; made by [`LockManager::watch_leader`].
#[derive(Debug)]
pub struct LeaderWatch {
    manager: LockManager,
    key: LockKey,
    /// What campaigns of this process learn.
    seen: watch::Receiver<Seen>,
    last: Option<Leader>,
    ask_at: Instant,
    /// Whether its last request got no answer: `changed` was dropped, or the store failed. What a campaign
    /// learned before is not reported yet, and the campaign does not tell it again.
    unanswered: bool,
}

impl LeaderWatch {
    /// The leader as it was seen last; `None` if no process led.
    pub fn last(&self) -> Option<&Leader> {
        self.last.as_ref()
    }

    /// Waits until the leader changes: another process, another term, or none. The first call returns at once
    /// if a process leads.
    ///
    /// At the start of a term its number may not be known yet. Then this completes with no
    /// [`term`](field@Leader::term), and again when the number is known. A leader that came and went between
    /// two requests is not reported.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store could not be reached; a later call asks again. [`Error::ShutDown`] when
    /// the manager shuts down. [`Error::InvalidOptions`] outside of a tokio runtime with timers, and in a fork.
    ///
    /// # Cancel safety
    ///
    /// If dropped, a later call reports the last change.
    pub async fn changed(&mut self) -> Result<Option<Leader>, Error> {
        loop {
            // As an acquisition does: it waits for a timer too.
            self.manager.shared.core.watchdog.start()?;
            tokio::select! {
                biased;
                () = self.manager.shared.core.watchdog.stopped() => {
                    return Err(shut_down(self.key.as_str()));
                }
                // The sender may be gone: then the timer alone counts.
                Ok(()) = self.seen.changed() => {}
                () = sleep_until(self.ask_at) => {
                    let seen = self.seen.borrow().at.map(|at| at + ASK_EVERY);
                    if let Some(next) = seen.filter(|next| *next > Instant::now())
                        && self.last.is_some()
                        && !self.unanswered
                        && !self.misses_term()
                    {
                        self.ask_at = next;
                        continue;
                    }
                }
            }
            // If this is dropped before the answer, the next call asks at once.
            (self.ask_at, self.unanswered) = (Instant::now(), true);
            let leader = self.manager.leader_of(&self.key).await;
            let now = Instant::now();
            self.unanswered = leader.is_err();
            self.ask_at = now + if leader.is_ok() { ASK_EVERY } else { ASK_AGAIN_AFTER };
            let leader = leader?;
            let is_same = match (&self.last, &leader) {
                (Some(last), Some(leader)) => last.is_same(leader),
                (last, leader) => last.is_none() && leader.is_none(),
            };
            self.last.clone_from(&leader);
            // Asked for once more: the leader writes its number when its term has begun.
            if self.misses_term() && !is_same {
                self.ask_at = now + ASK_AGAIN_AFTER;
            }
            if !is_same {
                return Ok(leader);
            }
        }
    }

    /// Whether the leader has not told its number yet, and will.
    fn misses_term(&self) -> bool {
        self.last.as_ref().is_some_and(|leader| leader.term.is_none())
            && self.manager.term_note(&self.key).is_some()
    }
}

/// What followers read of a term: its number, which the value of the lock cannot say, because it was written
/// before the store gave the number.
pub(super) struct TermNote<'a> {
    manager: &'a LockManager,
    options: &'a ResolvedOptions,
    claim: Option<Arc<Claim>>,
    /// When a request was sent whose grant no guard has taken over.
    asked: Option<Instant>,
}

impl<'a> TermNote<'a> {
    pub(super) fn new(
        manager: &'a LockManager,
        options: &'a ResolvedOptions,
        lock: &LockKey,
        holder: &Holder,
        number: FencingToken,
    ) -> Self {
        let shared = &manager.shared;
        let word = TermWord::new(number, holder).to_word();
        let label = shared.identity.label(options.function) + &word;
        // Without a note, followers see the holder and no number.
        let claim = manager.term_note(lock).map(|key| {
            Claim::with(shared.subscriber.id(), Arc::new([key]), Sharing::Exclusive, &label)
        });
        Self { manager, options, claim: claim.map(Arc::new), asked: None }
    }

    /// Leaves the note, and keeps it until it is dropped.
    pub(super) async fn keep(mut self) {
        while let Some(note) = self.leave().await {
            note.lost().await;
        }
        std::future::pending::<()>().await;
    }

    /// Leaves the note, or tries again: nothing depends on it.
    async fn leave(&mut self) -> Option<LockGuard> {
        let (claim, ttl) = (self.claim.as_ref()?, self.options.ttl);
        let core = &self.manager.shared.core;
        loop {
            let requested_at = Instant::now();
            self.asked = Some(requested_at);
            let outcome = core.store().acquire(&AcquireRequest::new(claim.clone(), ttl)).await;
            match outcome {
                Ok(AcquireOutcome::Acquired { fencing, .. }) => {
                    let lease = GrantedLease {
                        claim: claim.clone(),
                        fencing,
                        requested_at,
                        ttl,
                        renew: true,
                        max_hold: None,
                        progress_within: None,
                    };
                    self.asked = None;
                    return Some(LockGuard::granted(lease, None, None, core).0);
                }
                // That of the last leader, whose process was killed or hangs. The holder of the lock may
                // remove it.
                Ok(AcquireOutcome::Held { holder: Some(last), .. }) => {
                    core.store().force_release(claim.key(), &last.id).await.ok();
                }
                Ok(_) | Err(_) => {}
            }
            sleep(ttl / 20).await;
        }
    }
}

impl Drop for TermNote<'_> {
    fn drop(&mut self) {
        if let (Some(claim), Some(asked)) = (&self.claim, self.asked) {
            let (note, until) = (ReleaseRequest::new(claim.clone()), asked + self.options.ttl);
            self.manager.shared.core.watchdog.release_later(note, until, None);
        }
    }
}
