//! A store that grants a lock when a majority of independent stores grants it.

mod acquire;
mod acquire_replies;
mod agree_on_token;
#[cfg(feature = "redis")]
mod clients;
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

use tokio::time::timeout;

use crate::lock::fencing;
use crate::lock::holder::rounded;
use crate::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, LockKey, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError, Subscriber,
};
use crate::{Error, HeldLock, HeldLocks, Holder, HolderId};
#[cfg(feature = "redis")]
pub use clients::RedlockOptions;
use held_locks::HeldLockLists;
use holder::HolderReplies;
#[cfg(feature = "redis")]
pub(super) use members::Member;
#[cfg(feature = "redis")]
use members::Members;
use quorum::Quorum;
use round::Round;

/// How long a connecting manager waits for the replies beyond a majority.
const REPLY_GRACE: Duration = Duration::from_millis(250);

/// The error for two host names that lead to the same server.
pub(super) const DUPLICATE_SERVER: &str =
    "the store names a server twice, by two names, which would give it two votes: leave one out";

/// Locks that a majority of independent stores grants: Redlock (Sanfilippo, *Distributed locks with
/// Redis*), with fencing tokens.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `redlock://` URL, or by
/// hand from stores that support [`hint`](field@AcquireRequest::hint) and
/// [`fence`](field@RenewRequest::fence): [`RedisStore`](crate::store::RedisStore) and
/// [`MemoryStore`](crate::store::MemoryStore). Databases, ZooKeeper and etcd count by themselves,
/// and cannot be nodes. A minority of the nodes may be down or hang without effect on the locks.
///
/// * Every request is sent to all nodes at once. A majority of the replies decides.
/// * The lease is counted from before the request is sent, so it does not include the round trip.
/// * If too few nodes grant the lock, the store releases it on those that did. The caller retries
///   after a random delay.
/// * The fencing token is the greatest number that a node gave, once a majority knows it. This
///   takes one round trip while the nodes agree, which they do while the clocks do; else two.
/// * A lock counts as renewed or released once a majority reports it. The majority is of all nodes,
///   whether they are up or down.
/// * A key is [done](Store::mark_done) once a majority has the mark, and for at most
///   [`MAX_TTL`](Self::MAX_TTL) unless the servers are durable. The next claim that learns it gives the
///   mark to nodes that lack it. Where fewer have it, they keep no claim out, and the next claim clears it.
/// * [Permits](crate::store::Sharing::Permits) need more than a majority. With a majority for each
///   holder, three nodes would let three holders have two permits. With `n` nodes and `p` permits,
///   a claim needs `n · p / (p + 1)` nodes, rounded down, plus one.
/// * The nodes notify queued claims when the lock is free, and these then acquire it: in the order
///   in which they came, as long as the nodes agree on it.
///
/// A node that may have forgotten what it granted must not grant: see [`MAX_TTL`](Self::MAX_TTL).
/// The server's user therefore needs `+info`, besides the rights that
/// [`RedisStore`](crate::store::RedisStore) lists.
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
    /// The last hint. No two requests of this process have the same.
    hint: AtomicU64,
    /// The servers that the URL's host names lead to.
    #[cfg(feature = "redis")]
    members: Option<Arc<Members>>,
}

impl RedlockStore {
    /// The longest lease, unless the URL sets another `max_ttl`: one minute.
    ///
    /// A restarted server may have forgotten what it granted, and its fencing counter. It therefore
    /// grants nothing until every earlier lease has expired and every clock is past the earlier
    /// hints: until its uptime exceeds `max_ttl` plus 1 % plus [`clock_skew`](Self::CLOCK_SKEW).
    /// The server reports its uptime in whole seconds, so this may take one second more. Options
    /// with a longer lease are refused.
    ///
    /// None of this applies with `durable=true` in the URL. It states that every server writes each
    /// change to disk before it replies (`appendonly yes`, `appendfsync always`).
    pub const MAX_TTL: Duration = Duration::from_secs(60);

    /// The greatest difference between the clocks of the locking processes, unless the URL sets
    /// another `clock_skew`: one second.
    pub const CLOCK_SKEW: Duration = Duration::from_secs(1);

    /// Makes a store from these nodes. Each must be on a machine of its own.
    ///
    /// A [`RedisStore`](crate::store::RedisStore) that the program has made does not know that it
    /// is a node: it grants at once after a restart, and may have forgotten what it granted. So its
    /// server must write each change to disk before it replies (`appendonly yes`, `appendfsync
    /// always`). Nodes that [`open`](Self::open) and `from_clients` make wait after a restart.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if there are fewer than 3 (with two, both would have to be up) or
    /// more than 63.
    pub fn new(nodes: impl IntoIterator<Item = impl Into<AnyStore>>) -> Result<Self, Error> {
        let nodes: Vec<AnyStore> = nodes.into_iter().map(Into::into).collect();
        if !(3..=63).contains(&nodes.len()) {
            return Err(Error::InvalidOptions(format!(
                "a quorum needs 3 to 63 servers, not {}: add servers, or use `redis://` for a single one",
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

    /// Whether two host names are known to lead to the same server.
    fn has_one_twice(&self) -> bool {
        #[cfg(feature = "redis")]
        return self.members.as_ref().is_some_and(|members| members.has_one_twice());
        #[cfg(not(feature = "redis"))]
        false
    }

    /// Returns the next hint, from the clock: the same for all nodes.
    fn next_hint(&self) -> u64 {
        let now = fencing::clock();
        let next = |last: u64| now.max(last + 1);
        let advance = |last| Some(next(last));
        self.hint.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance).map_or(now, next)
    }

    /// Sends one request to each node, and returns what a majority replies for each claim. Requests
    /// to the other nodes run to completion in the background.
    async fn by_majority<'a, F>(
        &self,
        claims: impl Iterator<Item = &'a Arc<Claim>>,
        requests: impl Iterator<Item = F>,
    ) -> Vec<Result<bool, StoreError>>
    where
        F: Future<Output = Vec<Result<bool, StoreError>>> + Send + 'static,
    {
        let needed = claims.map(|claim| self.quorum.needed(claim.sharing()));
        let mut round = Round::new(requests);
        let replies = majority::by_majority(self.quorum, needed, &mut round).await;
        round.finish_in_background();
        replies
    }
}

/// A server that restarts without its data forgets which keys are done, as it forgets leases.
fn too_long_done(longest: Duration) -> String {
    let longest = rounded(longest);
    format!(
        "this quorum keeps a key done for at most {longest}, its `max_ttl`: a server that restarts \
         may have forgotten the mark, and grants locks again after that time. If every server \
         writes each change to disk before it replies, set `durable=true` in the URL"
    )
}

impl Store for RedlockStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.acquire_on_all(request).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.nodes.iter().for_each(|node| node.subscribe(subscriber));
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let renew =
            |one: &RenewRequest| RenewRequest { claim: one.claim.last_attempt(), ..one.clone() };
        let batch: Arc<[_]> = renewals.iter().map(renew).collect();
        let send = |node: AnyStore| {
            let batch = batch.clone();
            async move {
                let held = |reply| reply == RenewOutcome::Renewed;
                let replies = node.renew(&batch).await;
                replies.into_iter().map(|reply| reply.map(held)).collect()
            }
        };
        let claims = batch.iter().map(|one| &one.claim);
        let replies = self.by_majority(claims, self.nodes.iter().cloned().map(send)).await;
        let renewed = |held| if held { RenewOutcome::Renewed } else { RenewOutcome::NotHeld };
        replies.into_iter().map(|reply| reply.map(renewed)).collect()
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
        let send = |(nth, node): (usize, AnyStore)| {
            let batch = batch.clone();
            async move {
                let held = |reply| reply == ReleaseOutcome::Released;
                let replies = node.release(&batch).await;
                batch.iter().for_each(|one| one.claim.note_released(nth, one.quietly));
                replies.into_iter().map(|reply| reply.map(held)).collect()
            }
        };
        let claims = batch.iter().map(|one| &one.claim);
        let requests = self.nodes.iter().cloned().enumerate().map(send);
        let replies = self.by_majority(claims, requests).await;
        let released = |held| if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld };
        replies.into_iter().map(|reply| reply.map(released)).collect()
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let mut round = Round::new(self.nodes.iter().map(|node| node.holder(key)));
        let mut replies = HolderReplies::of(self.quorum);
        while let Some((_, reply)) = round.next().await {
            if replies.count(reply) {
                break;
            }
        }
        replies.outcome()
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        Ok(self.list_held_locks(prefix).await?.locks)
    }

    /// Waits for all nodes, because any of them may have a lock that the others do not.
    async fn list_held_locks(&self, prefix: &str) -> Result<HeldLocks, StoreError> {
        let mut round = Round::new(self.nodes.iter().map(|node| node.list_held_locks(prefix)));
        let mut lists = HeldLockLists::of(self.quorum);
        while let Some((_, reply)) = round.next().await {
            lists.add(reply);
        }
        lists.outcome()
    }

    /// Takes the lock from that holder on a majority of the nodes, so that it no longer has one.
    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        let mut round = Round::new(self.nodes.iter().map(|node| node.force_release(key, holder)));
        let (majority, mut had, mut had_not) = (self.quorum.majority(), 0, Vec::new());
        let mut failed = StoreError::new("fewer than a majority of the servers replied");
        while let Some((nth, reply)) = round.next().await {
            match reply {
                Ok(true) => had += 1,
                Ok(false) => had_not.push(&self.nodes[nth]),
                Err(error) => failed = error,
            }
        }
        if had + had_not.len() < majority {
            return Err(failed);
        }
        let is_mark = *holder == holder.mark();
        // Nodes that did not reply may have had the lock too.
        let was_held = |had_not: usize| had_not + majority <= self.nodes.len();
        if had == 0 || !(is_mark || was_held(had_not.len())) {
            return Ok(false);
        }
        // Each node may have the mark of another claim, which would keep the key on it for its period.
        let clear = async |node: &AnyStore| match node.holder(key).await {
            Ok(Some(other)) if other.done => node.force_release(key, &other.id).await,
            _ => Ok(false),
        };
        let mut taken = 0;
        let mut rest = Round::new(had_not.iter().copied().map(clear));
        while let Some((_, reply)) = rest.next().await {
            taken += usize::from(is_mark && matches!(reply, Ok(true)));
        }
        Ok(was_held(had_not.len() - taken))
    }

    /// Marks the lock on a majority of the nodes. On the others, the lease ends by itself; one that is marked among fewer
    /// keeps that lock held, as a lock that a minority has granted, and keeps no claim out.
    async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        if lasts > self.longest_ttl {
            return Err(StoreError::new(too_long_done(self.longest_ttl)).not_sent());
        }
        let attempt = claim.last_owner();
        let send = |node: AnyStore| {
            let attempt = attempt.clone();
            async move {
                let marked = |reply| reply == ReleaseOutcome::Released;
                vec![node.mark_done(&attempt, lasts).await.map(marked)]
            }
        };
        let requests = self.nodes.iter().cloned().map(send);
        let mut replies = self.by_majority(std::iter::once(&attempt), requests).await;
        let marked = replies.remove(0)?;
        Ok(if marked { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld })
    }

    fn refuses_done(&self) -> Option<String> {
        self.nodes.iter().find_map(|node| node.refuses_done())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let send = async |node: &AnyStore| vec![node.ping().await.map(|()| true)];
        let mut round = Round::new(self.nodes.iter().map(send));
        let needed = std::iter::once(self.quorum.majority());
        let mut replies = majority::by_majority(self.quorum, needed, &mut round).await;
        // Only its reply shows whether a further node is the same server. A node that hangs is not
        // waited for.
        let others = async { while round.next().await.is_some() {} };
        timeout(REPLY_GRACE, others).await.ok();
        match self.has_one_twice() {
            true => Err(StoreError::new(DUPLICATE_SERVER).not_sent().invalid()),
            false => replies.remove(0).map(|_there| ()),
        }
    }

    fn address(&self) -> Option<String> {
        let addresses: Vec<_> = self.nodes.iter().filter_map(|node| node.address()).collect();
        (!addresses.is_empty()).then(|| addresses.join(", "))
    }

    /// The request has left once it has left for any node.
    fn notes_departures(&self) -> bool {
        self.nodes.iter().all(|node| node.notes_departures())
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        self.nodes.iter().find_map(|node| node.refuses(key))
    }

    /// It has shared locks, permits and several keys.
    fn refuses_claim(&self, _claim: &Claim) -> Option<String> {
        None
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
