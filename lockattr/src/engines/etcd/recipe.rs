//! etcd as the sequenced layer sees it. Requests run on the store's own thread to completion, even
//! if the caller gives up.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinHandle;

use super::config::Config;
use super::core::Core;
use super::names;
use super::request_order::{OrderedRequest, RequestOrder};
use super::requests::EnterRequest;
use super::session::Session;
use crate::engines::sequenced::{
    ClaimEntries, Entered, Entry, EntryValue, LockQueues, LockRecipe, NewEntry, Permit,
    StoreThread, ThreadGuard,
};
use crate::store::silence::unless_silent;
use crate::store::{LockKey, OwnerToken, StoreError};

/// A cluster, and the store's one lease there.
pub(super) struct Etcd {
    core: Arc<Core>,
    thread: StoreThread,
}

impl Etcd {
    pub(super) fn new(config: Config) -> Self {
        Self { core: Core::new(config), thread: StoreThread::new("lockattr-etcd") }
    }

    /// Runs work on the store's thread. It continues if the caller stops waiting.
    fn spawn<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> Result<JoinHandle<T>, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        Ok(self.thread.handle()?.spawn(work(self.core.clone())))
    }

    async fn run_to_end<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let done = self.spawn(work)?;
        done.await
            .unwrap_or_else(|_| Err(StoreError::new("the thread of the store's session has ended")))
    }

    /// The same, but aborts the work when the caller stops waiting.
    async fn run_while_awaited<F>(&self, work: impl FnOnce(Arc<Core>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Ok(task) = self.spawn(work) {
            let mut task = AbortOnDrop(task);
            // If the thread has ended, the result cannot be known.
            drop((&mut task.0).await);
        }
    }
}

/// A task that is aborted when this is dropped.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl LockRecipe for Etcd {
    fn thread(&self) -> &StoreThread {
        &self.thread
    }

    async fn ready(&self, permit: Permit) -> Result<Permit, StoreError> {
        if self.core.session().is_some() && self.core.connection.live().is_some() {
            return Ok(permit);
        }
        let ready = |core: Arc<Core>| async move {
            core.open().await?;
            core.connection.get().await.map(|_connection| permit)
        };
        self.run_to_end(|core| async move { ready(core).await.map_err(|failure| failure.error) })
            .await
    }

    async fn enter(
        &self,
        entry: &NewEntry<'_>,
        _again: bool,
        permit: Permit,
    ) -> Result<Entered, StoreError> {
        let request = EnterRequest::new(entry);
        let turn = self.core.order.begin_enter(request.token, &request.queues);
        let entering = |core: Arc<Core>| async move {
            let entered = core.enter(&request, turn).await;
            drop(permit);
            entered
        };
        self.run_to_end(entering).await
    }

    async fn queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        let queue = names::queue_prefix(key);
        self.run_to_end(|core| async move { core.queue(&queue).await }).await
    }

    async fn latest_queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        // A majority confirms every read.
        self.queue(key).await
    }

    async fn queues(&self, prefix: &str) -> Result<LockQueues, StoreError> {
        let prefix = prefix.to_owned();
        self.run_to_end(|core| async move { core.queues(&prefix).await }).await
    }

    async fn value(&self, _key: &LockKey, entry: &Entry) -> Result<Option<EntryValue>, StoreError> {
        let entry = entry.clone();
        self.run_to_end(|core| async move { core.value(&entry).await }).await
    }

    async fn wait_until_gone(&self, _key: &LockKey, entry: &Entry, permit: Permit) {
        let entry = entry.clone();
        let waiting = |core: Arc<Core>| async move { core.wait_until_gone(&entry, permit).await };
        self.run_while_awaited(waiting).await;
    }

    async fn wait_until_grown(&self, key: &LockKey, seen: &[Entry], permit: Permit) {
        let (queue, seen) = (names::queue_prefix(key), seen.to_vec());
        let waiting =
            |core: Arc<Core>| async move { core.wait_until_grown(&queue, &seen, permit).await };
        self.run_while_awaited(waiting).await;
    }

    async fn confirm(&self, held: &[ClaimEntries<'_>]) -> Vec<Result<bool, StoreError>> {
        let Some(session) = self.core.session() else { return vec![Ok(false); held.len()] };
        let lease = session.lease.cast_unsigned();
        // The locks of an earlier session are lost, even if its entries are still there.
        let claims = held.iter().map(|held| match held.session == lease {
            true => held.entries.to_vec(),
            false => Vec::new(),
        });
        let claims: Vec<_> = claims.collect();
        let outcome =
            self.run_to_end(|core| async move { Ok(core.confirm(&session, &claims).await) }).await;
        outcome.unwrap_or_else(|error| vec![Err(error); held.len()])
    }

    async fn leave(
        &self,
        held: &[ClaimEntries<'_>],
        permit: Permit,
    ) -> Vec<Result<bool, StoreError>> {
        let leaving = |held| LeavingClaim::new(held, &self.core.order);
        let mut claims: Vec<_> = held.iter().map(leaving).collect();
        let outcome = self
            .run_to_end(|core| async move {
                let found = join_all(claims.iter_mut().map(|claim| claim.entries(&core))).await;
                let (entries, errors): (Vec<_>, Vec<_>) = found
                    .into_iter()
                    .map(|found| match found {
                        Ok(entries) => (entries, None),
                        Err(error) => (Vec::new(), Some(error)),
                    })
                    .unzip();
                let left = core.leave(&entries).await.into_iter().zip(errors).zip(&claims);
                let left = left.map(|((left, error), claim)| {
                    let left = error.map_or(left, Err);
                    if left.is_ok() {
                        claim.has_left(&core);
                    }
                    left
                });
                let left = left.collect();
                drop(permit);
                Ok(left)
            })
            .await;
        outcome.unwrap_or_else(|error: StoreError| vec![Err(error); held.len()])
    }

    async fn wait_until_ended(&self, session: u64) {
        let current = self.core.session();
        if let Some(current) = current.filter(|one| one.lease.cast_unsigned() == session) {
            current.ended().await;
        }
    }

    async fn unless_silent<T: Send>(
        &self,
        until: impl Future<Output = T> + Send,
    ) -> Result<T, StoreError> {
        let connection = &self.core.connection;
        let limit = connection.config.timing.response_timeout;
        let done = unless_silent(&connection.last_reply, limit, until).await;
        done.ok_or_else(|| {
            let address = &connection.config.address;
            StoreError::new(format!("no answer from {address} within {limit:?}"))
        })
    }

    fn max_ttl(&self) -> Duration {
        self.core.lease_timing().max_ttl()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.run_to_end(|core| async move { core.ping().await }).await
    }
}

/// A claim that leaves its queues.
struct LeavingClaim {
    token: OwnerToken,
    queues: Vec<String>,
    known: Vec<Entry>,
    /// Whether its own store removes it, with all its entries.
    by_its_store: bool,
    turn: OrderedRequest,
}

impl LeavingClaim {
    fn new(held: &ClaimEntries<'_>, order: &RequestOrder) -> Self {
        let queues: Vec<_> = held.keys.iter().map(names::queue_prefix).collect();
        let turn = order.begin_leave(held.token, &queues);
        let by_its_store = held.session != 0 || held.entries.is_empty();
        Self { token: held.token, queues, known: held.entries.to_vec(), by_its_store, turn }
    }

    /// Returns the claim's entries, once none of its requests can take effect any more.
    async fn entries(&mut self, core: &Core) -> Result<Vec<Entry>, StoreError> {
        self.turn.wait_for_earlier().await;
        core.fence_lost_requests().await?;
        if !self.known.is_empty() {
            return Ok(self.known.clone());
        }
        let queues = join_all(self.queues.iter().map(|queue| core.queue(queue))).await;
        let mut ours = Vec::new();
        for queue in queues {
            ours.extend(queue?.into_iter().filter(|entry| entry.token == self.token));
        }
        Ok(ours)
    }

    /// The servers have replied that its entries are gone.
    fn has_left(&self, core: &Core) {
        if self.by_its_store
            && let Some(session) = core.session()
        {
            session.names.is_removed(self.token, &self.queues);
        }
    }
}

impl Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.core.connection.config.address;
        f.debug_struct("Etcd").field("address", address).finish_non_exhaustive()
    }
}

impl Drop for Etcd {
    /// Revokes the lease. Otherwise the servers would keep it, and a watch of its key, until it
    /// expires.
    fn drop(&mut self) {
        let Some(session) = self.core.session() else { return };
        let (Ok(handle), Ok(guard)) = (self.thread.handle(), self.thread.guard()) else { return };
        drop(handle.spawn(revoke_session(self.core.clone(), session, guard)));
    }
}

/// Keeps the thread running until the lease is revoked.
async fn revoke_session(core: Arc<Core>, session: Arc<Session>, guard: ThreadGuard) {
    core.revoke(&session).await;
    drop(guard);
}
