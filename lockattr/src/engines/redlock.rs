//! A store made of stores that know nothing of one another: a majority of them decides.

mod acquire;
mod acquire_answers;
mod agree_on_token;
mod held_locks;
mod holder;
mod majority;
#[cfg(feature = "redis")]
mod members;
mod quorum;
mod round;
#[cfg(feature = "redis")]
mod url;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::lock::fencing;
use crate::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, LockKey, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError, Subscriber,
};
use crate::{Error, HeldLock, Holder};
use held_locks::HeldLockLists;
use holder::HolderAnswers;
#[cfg(feature = "redis")]
pub(super) use members::Member;
#[cfg(feature = "redis")]
use members::Members;
use quorum::Quorum;
use round::Round;

/// For how long a manager that connects waits for those beyond a majority.
const ALL_ANSWER_WITHIN: Duration = Duration::from_millis(250);

/// What is wrong where two names lead to one server.
pub(super) const TWICE: &str =
    "the URL names a server twice, under two names: it would have two votes";

/// Locks that are had where a majority of independent stores grants them: Redlock (Sanfilippo,
/// *Distributed locks with Redis*), with fencing tokens.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `redlock://` URL, or by hand
/// of stores that count as they are asked to ([`hint`](field@AcquireRequest::hint),
/// [`fence`](field@RenewRequest::fence)): each a [`RedisStore`](crate::store::RedisStore) or a
/// [`MemoryStore`](crate::store::MemoryStore). Databases, ZooKeeper and etcd have numbers of their own,
/// and are no nodes. A minority of the nodes may be down, or hang, without being noticed.
///
/// * All are asked at once, and a majority of answers decides.
/// * The lease is counted from before the question, so what it takes to ask is no part of it.
/// * What was granted by too few is given back, and asked for again after a random while.
/// * The fencing token is the greatest number that one of them gave, once a majority knows it: one
///   trip as long as they agree, which they do while clocks do; else two.
/// * A lock counts as renewed, or as released, where a majority of all stores reports it, up or down.
/// * [Permits](crate::store::Sharing::Permits) take more than a majority: with a majority for each
///   holder, three stores would let three holders have two permits. `n` stores and `p` permits take
///   `n · p / (p + 1)`, rounded down, and one.
/// * Claims in the queue learn when the lock is free, and take it themselves; in the order in which
///   they came as long as the stores agree on it.
///
/// A store that may have forgotten what it granted must not grant: see [`MAX_TTL`](Self::MAX_TTL).
/// For that the user of a server needs `+info`, besides the rights that
/// [`RedisStore`](crate::store::RedisStore) names.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use std::sync::Arc;
/// use lockattr::store::{MemoryStore, RedlockStore};
/// use lockattr::{LockManager, LockOptions};
///
/// let nodes = (0..3).map(|_| Arc::new(MemoryStore::new()));
/// let store = Arc::new(RedlockStore::new(nodes)?);
/// let manager = LockManager::builder().store(store).build()?;
/// let _held = manager.acquire("product:42", LockOptions::new()).await?;
/// assert!(manager.try_acquire("product:42", LockOptions::new()).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RedlockStore {
    nodes: Vec<AnyStore>,
    quorum: Quorum,
    longest_ttl: Duration,
    /// The last hint: two questions of this process never have the same.
    hint: AtomicU64,
    /// Which servers the names in its URL lead to.
    #[cfg(feature = "redis")]
    members: Option<Arc<Members>>,
}

impl RedlockStore {
    /// The longest lease, unless the URL sets another `max_ttl`: one minute.
    ///
    /// A server that was restarted may have forgotten what it granted, and how far it has counted. So
    /// it grants nothing until every lease of before has ended, and every clock is past the hints of
    /// before: for `max_ttl` and 1 % of it and [`clock_skew`](Self::CLOCK_SKEW), by its own uptime;
    /// it tells that in whole seconds, so it may be one second more.
    /// Options that ask for a longer lease are refused. With `durable=true` in the URL none of this is
    /// so: it says that every server has each write on its disk before it answers (`appendonly yes`,
    /// `appendfsync always`).
    pub const MAX_TTL: Duration = Duration::from_secs(60);

    /// How far the clocks of the processes that lock are apart at most, unless the URL sets another
    /// `clock_skew`: one second.
    pub const CLOCK_SKEW: Duration = Duration::from_secs(1);

    /// The quorum of these stores, each on a machine of its own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if there are fewer than 3 (of two, both would have to be up) or more
    /// than 63.
    pub fn new(nodes: impl IntoIterator<Item = impl Into<AnyStore>>) -> Result<Self, Error> {
        let nodes: Vec<AnyStore> = nodes.into_iter().map(Into::into).collect();
        if !(3..=63).contains(&nodes.len()) {
            return Err(Error::InvalidOptions(format!(
                "a quorum of {} is none: name 3 to 63 servers, or one with `redis://`",
                nodes.len()
            )));
        }
        let quorum = Quorum::of(nodes.len());
        let longest_ttl =
            nodes.iter().map(|node| node.longest_ttl()).min().unwrap_or(Duration::MAX);
        Ok(Self {
            nodes,
            quorum,
            longest_ttl,
            hint: AtomicU64::new(0),
            #[cfg(feature = "redis")]
            members: None,
        })
    }

    /// Whether two of its names are known to lead to one server.
    fn has_one_twice(&self) -> bool {
        #[cfg(feature = "redis")]
        return self.members.as_ref().is_some_and(|members| members.has_one_twice());
        #[cfg(not(feature = "redis"))]
        false
    }

    /// What the clock shows, for all nodes alike.
    fn next_hint(&self) -> u64 {
        let now = fencing::clock();
        let next = |last: u64| now.max(last + 1);
        let advance = |last| Some(next(last));
        self.hint.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance).map_or(now, next)
    }

    /// What a majority of the nodes says of each of these claims, one question to each node; the
    /// others are seen through.
    async fn by_majority<'a, F>(
        &self,
        claims: impl Iterator<Item = &'a Arc<Claim>>,
        questions: impl Iterator<Item = F>,
    ) -> Vec<Result<bool, StoreError>>
    where
        F: Future<Output = Vec<Result<bool, StoreError>>> + Send + 'static,
    {
        let needed = claims.map(|claim| self.quorum.needed(claim.sharing()));
        let mut round = Round::new(questions);
        let answers = majority::by_majority(self.quorum, needed, &mut round).await;
        round.see_through();
        answers
    }
}

impl Store for RedlockStore {
    async fn acquire(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.acquire_on_all(asked).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.nodes.iter().for_each(|node| node.subscribe(subscriber));
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let renew =
            |one: &RenewRequest| RenewRequest { claim: one.claim.last_attempt(), ..one.clone() };
        let batch: Arc<[_]> = renewals.iter().map(renew).collect();
        let ask = |node: AnyStore| {
            let batch = batch.clone();
            async move {
                let held = |answer| answer == RenewOutcome::Renewed;
                let answers = node.renew(&batch).await;
                answers.into_iter().map(|answer| answer.map(held)).collect()
            }
        };
        let claims = batch.iter().map(|one| &one.claim);
        let answers = self.by_majority(claims, self.nodes.iter().cloned().map(ask)).await;
        let renewed = |held| if held { RenewOutcome::Renewed } else { RenewOutcome::NotHeld };
        answers.into_iter().map(|answer| answer.map(renewed)).collect()
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let release = |one: &ReleaseRequest| ReleaseRequest {
            claim: one.claim.last_attempt(),
            ..one.clone()
        };
        let batch: Arc<[_]> = releases.iter().map(release).collect();
        let ask = |(nth, node): (usize, AnyStore)| {
            let batch = batch.clone();
            async move {
                let held = |answer| answer == ReleaseOutcome::Released;
                let answers = node.release(&batch).await;
                batch.iter().for_each(|one| one.claim.note_released(nth, one.quietly));
                answers.into_iter().map(|answer| answer.map(held)).collect()
            }
        };
        let claims = batch.iter().map(|one| &one.claim);
        let questions = self.nodes.iter().cloned().enumerate().map(ask);
        let answers = self.by_majority(claims, questions).await;
        let released = |held| if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld };
        answers.into_iter().map(|answer| answer.map(released)).collect()
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let mut round = Round::new(self.nodes.iter().map(|node| node.holder(key)));
        let mut answers = HolderAnswers::of(self.quorum);
        while let Some((_, answer)) = round.next().await {
            if answers.count(answer) {
                break;
            }
        }
        answers.outcome()
    }

    /// All nodes are waited for: on which of them a lock is, it is unknown before.
    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        let mut round = Round::new(self.nodes.iter().map(|node| node.held_locks(prefix)));
        let mut lists = HeldLockLists::of(self.quorum);
        while let Some((_, answer)) = round.next().await {
            lists.add(answer);
        }
        lists.outcome()
    }

    /// On a majority, so that the process that had it has none any more.
    async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        let mut round = Round::new(self.nodes.iter().map(|node| node.force_release(key)));
        let (majority, mut had, mut had_not) = (self.quorum.majority(), 0, 0);
        let mut failed = StoreError::new("too few answered");
        while let Some((_, answer)) = round.next().await {
            match answer {
                Ok(true) => had += 1,
                Ok(false) => had_not += 1,
                Err(error) => failed = error,
            }
        }
        if had + had_not < majority {
            return Err(failed);
        }
        // It may have been on those too that did not answer.
        Ok(had > 0 && had_not + majority <= self.nodes.len())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let ask = async |node: &AnyStore| vec![node.ping().await.map(|()| true)];
        let mut round = Round::new(self.nodes.iter().map(ask));
        let needed = std::iter::once(self.quorum.majority());
        let mut answers = majority::by_majority(self.quorum, needed, &mut round).await;
        // Whether one of the others is the same server, only it can say; one that hangs need not.
        let others = async { while round.next().await.is_some() {} };
        timeout(ALL_ANSWER_WITHIN, others).await.ok();
        match self.has_one_twice() {
            true => Err(StoreError::new(TWICE).not_sent().invalid()),
            false => answers.remove(0).map(|_there| ()),
        }
    }

    /// Where a majority has.
    fn answered_since(&self, key: &LockKey, since: Instant) -> bool {
        let answered = self.nodes.iter().filter(|node| node.answered_since(key, since)).count();
        answered >= self.quorum.majority()
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        self.nodes.iter().find_map(|node| node.refuses(key))
    }

    fn supports_companions(&self) -> bool {
        true
    }

    fn needs_io(&self) -> bool {
        self.nodes.iter().any(|node| node.needs_io())
    }

    fn longest_ttl(&self) -> Duration {
        self.longest_ttl
    }
}
