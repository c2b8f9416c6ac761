//! A store made of stores that know nothing of one another: a majority of them decides.

mod acquisition;
mod ballot;
mod poll;
mod quorum;
mod round;
#[cfg(feature = "redis")]
mod url;
mod votes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{
    Acquire, Acquiring, Claim, Inbox, LockKey, Release, Releasing, Renew, Renewal, Store,
    StoreError, StoreFuture,
};
use crate::{Error, Holder, fencing};
use poll::Poll;
use quorum::Quorum;
use round::Round;

/// Locks that are had where a majority of independent stores grants them: Redlock (Sanfilippo,
/// *Distributed locks with Redis*), with fencing tokens.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `redlock://` URL, or by hand
/// of any stores. A minority of them may be down, or hang, without being noticed.
///
/// * All are asked at once, and a majority of answers decides.
/// * The lease is counted from before the question, so what it takes to ask is no part of it.
/// * What was granted by too few is given back, and asked for again after a random while.
/// * The fencing token is the greatest number that one of them gave, once a majority knows it: one
///   trip as long as they agree, which they do while clocks do; else two.
/// * A lock counts as renewed, or as released, where a majority of all stores says so, up or down.
/// * [Permits](crate::store::Sharing::Permits) take more than a majority: with a majority for each
///   holder, three stores would let three holders have two permits. `n` stores and `p` permits take
///   `n · p / (p + 1)`, rounded down, and one.
/// * Claims in line are told when the lock is free, and take it themselves; in the order in which
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
/// use lockattr::store::{MemoryStore, RedlockStore, Store};
/// use lockattr::{LockManager, LockOptions};
///
/// let nodes = (0..3).map(|_| Arc::new(MemoryStore::new()) as Arc<dyn Store>);
/// let store = Arc::new(RedlockStore::new(nodes)?);
/// let manager = LockManager::builder().store(store).build()?;
/// let _held = manager.acquire("product:42", LockOptions::new()).await?;
/// assert!(manager.try_acquire("product:42", LockOptions::new()).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RedlockStore {
    nodes: Vec<Arc<dyn Store>>,
    quorum: Quorum,
    longest_ttl: Duration,
    /// The last hint: two questions of this process never have the same.
    hint: AtomicU64,
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
    pub fn new(nodes: impl IntoIterator<Item = Arc<dyn Store>>) -> Result<Self, Error> {
        let nodes: Vec<_> = nodes.into_iter().collect();
        if !(3..=63).contains(&nodes.len()) {
            return Err(Error::InvalidOptions(format!(
                "a quorum of {} is none: name 3 to 63 servers, or one with `redis://`",
                nodes.len()
            )));
        }
        let quorum = Quorum::of(nodes.len());
        Ok(Self { nodes, quorum, longest_ttl: Duration::MAX, hint: AtomicU64::new(0) })
    }

    /// What the clock shows, for all nodes alike.
    fn next_hint(&self) -> u64 {
        let now = fencing::clock();
        let next = |last: u64| Some(now.max(last + 1));
        let last = self.hint.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.map_or(now, |last| now.max(last + 1))
    }
}

/// Who has what a claim was granted.
fn last_attempt(claim: Arc<Claim>) -> Arc<Claim> {
    claim.last_attempt().unwrap_or(claim)
}

impl Store for RedlockStore {
    fn acquire<'a>(&'a self, asked: &'a Acquiring) -> StoreFuture<'a, Result<Acquire, StoreError>> {
        Box::pin(self.acquire_on_all(asked))
    }

    fn listen(&self, inbox: &Arc<Inbox>) {
        self.nodes.iter().for_each(|node| node.listen(inbox));
    }

    fn renew<'a>(
        &'a self,
        renewals: &'a [Renewal],
    ) -> StoreFuture<'a, Vec<Result<Renew, StoreError>>> {
        Box::pin(async move {
            let renew =
                |renewal: Renewal| Renewal { claim: last_attempt(renewal.claim), ..renewal };
            let batch: Arc<[_]> = renewals.iter().cloned().map(renew).collect();
            let ask = |node: Arc<dyn Store>| {
                let batch = batch.clone();
                async move {
                    let held = |answer| answer == Renew::Renewed;
                    let answers = node.renew(&batch).await;
                    answers.into_iter().map(|answer| answer.map(held)).collect()
                }
            };
            let needed = renewals.iter().map(|one| self.quorum.needed(one.claim.sharing()));
            let mut round = Round::new(self.nodes.iter().cloned().map(ask));
            let answers = ballot::count(self.quorum, needed, &mut round).await;
            round.see_through();
            let renewed = |held| if held { Renew::Renewed } else { Renew::NotHeld };
            answers.into_iter().map(|answer| answer.map(renewed)).collect()
        })
    }

    fn release<'a>(
        &'a self,
        releases: &'a [Releasing],
    ) -> StoreFuture<'a, Vec<Result<Release, StoreError>>> {
        let batch = releases
            .iter()
            .cloned()
            .map(|release| Releasing { claim: last_attempt(release.claim), ..release });
        let batch: Arc<[Releasing]> = batch.collect();
        let ask = move |(nth, node): (usize, Arc<dyn Store>)| {
            let batch = batch.clone();
            async move {
                let held = |answer| answer == Release::Released;
                let answers = node.release(&batch).await;
                batch.iter().for_each(|one| one.claim.was_given_back(nth, one.quietly));
                answers.into_iter().map(|answer| answer.map(held)).collect()
            }
        };
        Box::pin(async move {
            let needed = releases.iter().map(|one| self.quorum.needed(one.claim.sharing()));
            let mut round = Round::new(self.nodes.iter().cloned().enumerate().map(ask));
            let answers = ballot::count(self.quorum, needed, &mut round).await;
            round.see_through();
            let released = |held| if held { Release::Released } else { Release::NotHeld };
            answers.into_iter().map(|answer| answer.map(released)).collect()
        })
    }

    fn holder<'a>(
        &'a self,
        key: &'a LockKey,
    ) -> StoreFuture<'a, Result<Option<Holder>, StoreError>> {
        Box::pin(async move {
            let mut round = Round::new(self.nodes.iter().map(|node| node.holder(key)));
            let mut poll = Poll::of(self.quorum);
            while let Some((_, answer)) = round.next().await {
                if poll.count(answer) {
                    break;
                }
            }
            poll.outcome()
        })
    }

    fn ping(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let ask = async |node: &Arc<dyn Store>| vec![node.ping().await.map(|()| true)];
            let mut round = Round::new(self.nodes.iter().map(ask));
            let needed = std::iter::once(self.quorum.majority());
            let mut answers = ballot::count(self.quorum, needed, &mut round).await;
            answers.remove(0).map(|_there| ())
        })
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        self.nodes.iter().find_map(|node| node.refuses(key))
    }

    fn longest_ttl(&self) -> Duration {
        self.longest_ttl
    }
}
