//! etcd as the shared layer of ordered stores sees it: what is asked there is done on the store's own
//! thread, to its end, also if the caller gives up.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::config::Config;
use super::core::Core;
use super::names;
use super::order::{Order, Turn};
use super::requests::Wanted;
use super::session::Session;
use crate::engines::ordered::{
    Ensemble, Entered, Entry, Held, Line, NewEntry, Stay, Thread, Written,
};
use crate::store::{LockKey, OwnerToken, StoreError};

/// The members of one cluster, and one lease there.
pub(super) struct Etcd {
    core: Arc<Core>,
    thread: Thread,
}

impl Etcd {
    pub(super) fn new(config: Config) -> Self {
        Self { core: Core::new(config), thread: Thread::new("lockattr-etcd") }
    }

    /// Has it done on the store's thread. It goes on if nobody waits for it any more.
    fn begin<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> Result<JoinHandle<T>, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        Ok(self.thread.handle()?.spawn(work(self.core.clone())))
    }

    async fn whole<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let done = self.begin(work)?;
        done.await.unwrap_or_else(|_| Err(StoreError::new("the thread of its session has ended")))
    }

    /// The same, but only for as long as somebody waits.
    async fn while_wanted<F>(&self, work: impl FnOnce(Arc<Core>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Ok(working) = self.begin(work) {
            let mut working = Working(working);
            // If the thread has ended, nobody can tell.
            drop((&mut working.0).await);
        }
    }
}

/// Work that ends with whoever waits for it.
struct Working(JoinHandle<()>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Ensemble for Etcd {
    fn thread(&self) -> &Thread {
        &self.thread
    }

    async fn enter(&self, entry: &NewEntry<'_>, _again: bool) -> Result<Entered, StoreError> {
        let contended = Wanted::new(entry);
        let turn = self.core.order.enters(contended.token, &contended.lines);
        self.whole(|core| async move { core.enter(&contended, turn).await }).await
    }

    async fn line(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        let line = names::line_of(key);
        self.whole(|core| async move { core.line(&line).await }).await
    }

    async fn line_by_now(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        // Every look is one at a majority.
        self.line(key).await
    }

    async fn lines(&self, prefix: &str) -> Result<Vec<Line>, StoreError> {
        let prefix = prefix.to_owned();
        self.whole(|core| async move { core.lines(&prefix).await }).await
    }

    async fn value(&self, _key: &LockKey, entry: &Entry) -> Result<Option<Written>, StoreError> {
        let entry = entry.clone();
        self.whole(|core| async move { core.value(&entry).await }).await
    }

    async fn gone(&self, _key: &LockKey, entry: &Entry) {
        let entry = entry.clone();
        self.while_wanted(|core| async move { core.gone(&entry).await }).await;
    }

    async fn grown(&self, key: &LockKey, seen: &[Entry]) {
        let (line, seen) = (names::line_of(key), seen.to_vec());
        self.while_wanted(|core| async move { core.grown(&line, &seen).await }).await;
    }

    async fn confirm(&self, held: &[Held<'_>]) -> Vec<Result<bool, StoreError>> {
        let Some(session) = self.core.session() else { return vec![Ok(false); held.len()] };
        let lease = session.lease.cast_unsigned();
        // What an earlier session carried is over, also if its entries are there still.
        let claims = held.iter().map(|held| match held.session == lease {
            true => held.entries.to_vec(),
            false => Vec::new(),
        });
        let claims: Vec<_> = claims.collect();
        let outcome =
            self.whole(|core| async move { Ok(core.confirm(&session, &claims).await) }).await;
        outcome.unwrap_or_else(|error| vec![Err(error); held.len()])
    }

    async fn leave(&self, held: &[Held<'_>]) -> Vec<Result<bool, StoreError>> {
        let leaving = |held| Leaving::new(held, &self.core.order);
        let mut claims: Vec<_> = held.iter().map(leaving).collect();
        let outcome = self
            .whole(|core| async move {
                let found = join_all(claims.iter_mut().map(|claim| claim.entries(&core))).await;
                let (entries, errors): (Vec<_>, Vec<_>) = found
                    .into_iter()
                    .map(|found| match found {
                        Ok(entries) => (entries, None),
                        Err(error) => (Vec::new(), Some(error)),
                    })
                    .unzip();
                let left = core.leave(&entries).await.into_iter().zip(errors);
                Ok(left.map(|(left, error)| error.map_or(left, Err)).collect())
            })
            .await;
        outcome.unwrap_or_else(|error: StoreError| vec![Err(error); held.len()])
    }

    async fn ended(&self, session: u64) {
        let current = self.core.session();
        if let Some(current) = current.filter(|one| one.lease.cast_unsigned() == session) {
            current.ended().await;
        }
    }

    fn answered_since(&self, since: Instant) -> bool {
        self.core.link.answered.since(since)
    }

    fn keeps_for(&self) -> Duration {
        self.core.span().keeps_for()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.whole(|core| async move { core.ping().await }).await
    }
}

/// A claim that leaves its lines.
struct Leaving {
    token: OwnerToken,
    lines: Vec<String>,
    known: Vec<Entry>,
    turn: Turn,
}

impl Leaving {
    fn new(held: &Held<'_>, order: &Order) -> Self {
        let lines: Vec<_> = held.keys.iter().map(names::line_of).collect();
        let turn = order.leaves(held.token, &lines);
        Self { token: held.token, lines, known: held.entries.to_vec(), turn }
    }

    /// What it has in its lines, once no question of its can come true any more.
    async fn entries(&mut self, core: &Core) -> Result<Vec<Entry>, StoreError> {
        self.turn.comes().await;
        core.nothing_comes_later().await?;
        if !self.known.is_empty() {
            return Ok(self.known.clone());
        }
        let lines = join_all(self.lines.iter().map(|line| core.line(line))).await;
        let mut ours = Vec::new();
        for line in lines {
            ours.extend(line?.into_iter().filter(|entry| entry.token == self.token));
        }
        Ok(ours)
    }
}

impl Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.core.link.config.address;
        f.debug_struct("Etcd").field("address", address).finish_non_exhaustive()
    }
}

impl Drop for Etcd {
    /// Takes the lease back: else its servers would keep it, and a watch of it, until its time is
    /// over.
    fn drop(&mut self) {
        let Some(session) = self.core.session() else { return };
        let (Ok(handle), Ok(stay)) = (self.thread.handle(), self.thread.stay()) else { return };
        drop(handle.spawn(take_back(self.core.clone(), session, stay)));
    }
}

/// Keeps the thread until it is done.
async fn take_back(core: Arc<Core>, session: Arc<Session>, stay: Stay) {
    core.revoke(&session).await;
    drop(stay);
}
