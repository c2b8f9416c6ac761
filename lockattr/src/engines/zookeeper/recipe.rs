//! The lock recipe in ZooKeeper.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use zookeeper_client::{Error as ZkError, MultiWriteError};

use super::entries::Zookeeper;
use super::session::Session;
use super::size::{self, MAX_CHECKS, batches};
use super::under_way::UnderWay;
use crate::engines::sequenced::{
    ClaimEntries, Entered, Entry, EntryValue, LockQueue, LockQueues, LockRecipe, NewEntry, Permit,
    StoreThread,
};
use crate::store::silence::unless_silent;
use crate::store::{Claim, ListedName, LockKey, StoreError};

/// How often an entry is tried, in case the lock's node is made or removed at the same time.
const MAX_ATTEMPTS: usize = 10;

impl LockRecipe for Zookeeper {
    async fn ready(&self, permit: Permit) -> Result<Permit, StoreError> {
        self.sessions.get().await.map(|_session| permit)
    }

    async fn enter(
        &self,
        entry: &NewEntry<'_>,
        mut again: bool,
        permit: Permit,
    ) -> Result<Entered, StoreError> {
        let mut session = self.sessions.get().await?;
        let mut under_way = UnderWay::new(self, &session, permit)?;
        let (mut attempts, mut reopened) = (0, false);
        loop {
            if again && let Some(entered) = self.adopt(&session, entry).await? {
                under_way.ended();
                return Ok(entered);
            }
            let error = match self.make(&session, entry, attempts).await? {
                Ok(entered) => {
                    under_way.ended();
                    return Ok(entered);
                }
                Err(error) => error,
            };
            attempts += 1;
            match error {
                ZkError::NoNode | ZkError::NodeExists if attempts < MAX_ATTEMPTS => again = false,
                // Its entries are gone with it. A new session is made once.
                ZkError::SessionExpired | ZkError::ClientClosed
                    if session.is_terminated() && !reopened =>
                {
                    session = self.sessions.get().await?;
                    under_way.moves_to(&session);
                    reopened = true;
                }
                error => return Err(self.sessions.error(error)),
            }
        }
    }

    async fn queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        let session = self.sessions.get().await?;
        let path = self.path(key);
        self.read(self.sessions.send(&session, session.client.list_children(&path)).await?)
    }

    async fn latest_queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        let session = self.sessions.get().await?;
        self.sync_with_leader(&session).await?;
        let path = self.path(key);
        self.read(self.sessions.send(&session, session.client.list_children(&path)).await?)
    }

    async fn queues(&self, prefix: &str) -> Result<LockQueues, StoreError> {
        let session = self.sessions.get().await?;
        self.sync_with_leader(&session).await?;
        let chroot = &self.sessions.config.chroot;
        let names = match self.sessions.send(&session, session.client.list_children(chroot)).await?
        {
            Ok(names) => names,
            // Nothing was ever locked.
            Err(ZkError::NoNode) => return Ok(LockQueues::default()),
            Err(error) => return Err(self.sessions.error(error)),
        };
        let mut found = LockQueues::default();
        let mut keys = Vec::new();
        for name in &names {
            match super::names::listed(chroot, name, prefix) {
                ListedName::Key(key) => keys.push(key),
                ListedName::LeftOut => found.left_out += 1,
                ListedName::Elsewhere => {}
            }
        }
        let reads = keys.into_iter().map(async |key| {
            let path = self.path(&key);
            let queue = self.sessions.send(&session, session.client.list_children(&path)).await?;
            Ok((key, self.read(queue)?))
        });
        let reads: Vec<_> = reads.collect();
        let mut queues_read = stream::iter(reads).buffer_unordered(MAX_CHECKS);
        while let Some(read) = queues_read.next().await {
            let (key, entries) = read?;
            found.queues.push(LockQueue { key, entries, written: Vec::new() });
        }
        Ok(found)
    }

    async fn value(&self, key: &LockKey, entry: &Entry) -> Result<Option<EntryValue>, StoreError> {
        let session = self.sessions.get().await?;
        let path = self.path_of(key, entry);
        match self.sessions.send(&session, session.client.get_data(&path)).await? {
            Ok((value, stat)) => {
                let value = String::from_utf8_lossy(&value).into_owned();
                Ok(Some(EntryValue { value, counter: stat.czxid.cast_unsigned() }))
            }
            Err(ZkError::NoNode) => Ok(None),
            Err(error) => Err(self.sessions.error(error)),
        }
    }

    /// Watches the node itself, which needs no right to read it. But newer servers notify no
    /// process without that right; there, a waiter learns of the removal when it next asks. The
    /// watch outlives a connection: the client requests it again from the next server, which
    /// reports at once if the node was removed meanwhile.
    async fn wait_until_gone(&self, key: &LockKey, entry: &Entry, permit: Permit) {
        let Ok(session) = self.sessions.get().await else { return };
        let path = self.path_of(key, entry);
        let request = session.client.check_and_watch_stat(&path);
        // Else the entry is gone, or that cannot be known.
        if let Ok(Ok((Some(_), watcher))) = self.sessions.send(&session, request).await {
            drop(permit);
            watcher.changed().await;
        }
    }

    async fn wait_until_grown(&self, key: &LockKey, seen: &[Entry], permit: Permit) {
        let (path, mut permit) = (self.path(key), Some(permit));
        loop {
            let Ok(session) = self.sessions.get().await else { return };
            let request = session.client.list_and_watch_children(&path);
            let Ok(Ok((children, watcher))) = self.sessions.send(&session, request).await else {
                return;
            };
            let queue = super::names::entries(children);
            if queue.iter().any(|entry| !seen.contains(entry)) {
                return;
            }
            drop(permit.take());
            let event = watcher.changed().await;
            if event.session_state.is_terminated() {
                return;
            }
        }
    }

    async fn confirm(&self, held: &[ClaimEntries<'_>]) -> Vec<Result<bool, StoreError>> {
        let session = match self.sessions.get().await {
            Ok(session) => session,
            Err(error) => return held.iter().map(|_| Err(error.clone())).collect(),
        };
        let batches = batches(held).into_iter().map(|held| self.check(&session, held));
        join_all(batches).await.into_iter().flatten().collect()
    }

    async fn leave(
        &self,
        held: &[ClaimEntries<'_>],
        _permit: Permit,
    ) -> Vec<Result<bool, StoreError>> {
        let session = match self.sessions.get().await {
            Ok(session) => session,
            Err(error) => return held.iter().map(|_| Err(error.clone())).collect(),
        };
        join_all(held.iter().map(|held| self.remove(&session, held))).await
    }

    fn wait_until_ended(&self, session: u64) -> impl Future<Output = ()> + Send {
        let live = self.sessions.with(session).map(|session| session.ended());
        async move {
            if let Some(ended) = live {
                ended.await;
            }
        }
    }

    async fn unless_silent<T: Send>(
        &self,
        until: impl Future<Output = T> + Send,
    ) -> Result<T, StoreError> {
        let limit = self.sessions.config.response_timeout;
        let done = unless_silent(&self.sessions.last_reply, limit, until).await;
        done.ok_or_else(|| self.sessions.no_reply())
    }

    fn max_ttl(&self) -> Duration {
        self.sessions.config.max_ttl()
    }

    fn refuses(&self, claim: &Claim) -> Option<String> {
        size::refuses(&self.sessions.config.chroot, claim)
    }

    /// Reads only the store's own node, because the user may have no rights above it.
    async fn ping(&self) -> Result<(), StoreError> {
        let session = self.sessions.get().await?;
        let mut writer = session.client.new_multi_writer();
        let added = writer.add_check_version(&self.sessions.config.chroot, -1);
        added.map_err(|error| self.sessions.error(error))?;
        match self.sessions.send(&session, writer.commit()).await? {
            // Nothing was ever locked.
            Ok(_) | Err(ZkError::NoNode) => Ok(()),
            Err(error) => Err(self.sessions.error(error)),
        }
    }

    fn thread(&self) -> &StoreThread {
        &self.sessions.thread
    }
}

impl Zookeeper {
    /// Ensures that the server that replies knows all that others wrote until now.
    async fn sync_with_leader(&self, session: &Session) -> Result<(), StoreError> {
        let synced = session.client.sync(&self.sessions.config.chroot);
        match self.sessions.send(session, synced).await? {
            Ok(()) | Err(ZkError::NoNode) => Ok(()),
            Err(error) => Err(self.sessions.error(error)),
        }
    }

    /// Checks whether all these entries exist and the session lives, with a transaction: it changes
    /// nothing, but only a majority can commit it.
    async fn check(
        &self,
        session: &Session,
        held: &[ClaimEntries<'_>],
    ) -> Vec<Result<bool, StoreError>> {
        let own: Vec<_> = held.iter().filter(|it| it.session == session.id).collect();
        match self.are_there(session, &own).await {
            Ok(true) => held.iter().map(|it| Ok(it.session == session.id)).collect(),
            // Only single checks can tell which are missing.
            Ok(false) if own.len() > 1 => {
                let one = async |it: &ClaimEntries<'_>| {
                    Ok(it.session == session.id && self.are_there(session, &[it]).await?)
                };
                join_all(held.iter().map(one)).await
            }
            Ok(false) => held.iter().map(|_| Ok(false)).collect(),
            Err(error) => {
                let outcome = |it: &ClaimEntries<'_>| match it.session == session.id {
                    true => Err(error.clone()),
                    false => Ok(false),
                };
                held.iter().map(outcome).collect()
            }
        }
    }

    async fn are_there(
        &self,
        session: &Session,
        held: &[&ClaimEntries<'_>],
    ) -> Result<bool, StoreError> {
        let mut writer = session.client.new_multi_writer();
        for held in held {
            for (key, entry) in held.keys.iter().zip(held.entries) {
                let path = self.path_of(key, entry);
                let added = writer.add_check_version(&path, -1);
                added.map_err(|error| self.sessions.error(error))?;
            }
        }
        match self.sessions.unless_silent(session, writer.commit()).await {
            Ok(Ok(replies)) => {
                let _noted = self.sessions.noted(session, Ok(replies));
                Ok(true)
            }
            Ok(Err(MultiWriteError::OperationFailed { source: ZkError::NoNode, .. })) => {
                let _noted = self.sessions.noted::<()>(session, Err(ZkError::NoNode));
                Ok(false)
            }
            // The session is over, and all its entries with it.
            Ok(Err(error)) => match error.into() {
                ZkError::SessionExpired => Ok(false),
                error => Err(self.sessions.error(error)),
            },
            Err(error) => Err(error),
        }
    }

    /// Removes the entries of one claim. Returns whether they were there.
    async fn remove(&self, session: &Session, held: &ClaimEntries<'_>) -> Result<bool, StoreError> {
        let paths: Vec<_> = if held.entries.is_empty() {
            let found = self.find(session, held.keys, held.token).await?;
            let found = held.keys.iter().zip(found);
            found.filter_map(|(key, (_, own))| Some(self.path_of(key, &own?))).collect()
        } else {
            held.keys.iter().zip(held.entries).map(|(key, it)| self.path_of(key, it)).collect()
        };
        let parents = self.parents_to_remove(held.keys);
        self.delete(session, &paths, &parents).await
    }
}
