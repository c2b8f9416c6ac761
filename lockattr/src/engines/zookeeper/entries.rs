//! Entries in ZooKeeper. Each lock has one node, which the servers remove when it is empty, and
//! each entry is an ephemeral sequential node below it.

use std::sync::Arc;

use futures_util::future::join;
use zookeeper_client::{Acls, CreateMode, CreateOptions, Error as ZkError, MultiWriteError};

use super::config::Config;
use super::names;
use super::session::{Session, Sessions};
use crate::engines::sequenced::{Entered, Entry, NewEntry};
use crate::store::{LockKey, OwnerToken, StoreError};

/// The ensemble that a URL names.
#[derive(Debug)]
pub(super) struct Zookeeper {
    pub(super) sessions: Arc<Sessions>,
}

impl Zookeeper {
    pub(super) fn new(config: Config) -> Self {
        Self { sessions: Sessions::new(config) }
    }

    pub(super) fn path(&self, key: &LockKey) -> String {
        names::queue(&self.sessions.config.chroot, key)
    }

    pub(super) fn path_of(&self, key: &LockKey, entry: &Entry) -> String {
        [&self.path(key), "/", &entry.id].concat()
    }

    pub(super) fn as_mode(&self, mode: CreateMode) -> CreateOptions<'static> {
        match self.sessions.config.private {
            true => mode.with_acls(Acls::creator_all()),
            false => mode.with_acls(Acls::anyone_all()),
        }
    }

    /// Returns the entry of this claim and session in each queue, and the queues, up to date.
    pub(super) async fn find(
        &self,
        session: &Session,
        keys: &[LockKey],
        token: OwnerToken,
    ) -> Result<Vec<(Vec<Entry>, Option<Entry>)>, StoreError> {
        let client = &session.client;
        let paths: Vec<_> = keys.iter().map(|key| self.path(key)).collect();
        let synced = client.sync(&self.sessions.config.chroot);
        let queues: Vec<_> = paths.iter().map(|path| client.list_children(path)).collect();
        // A server that the client has just connected to may not know yet what another one wrote.
        let replies =
            join(self.sessions.send(session, synced), self.sessions.send_all(session, queues));
        let (synced, queues) = replies.await;
        match synced? {
            Ok(()) | Err(ZkError::NoNode) => {}
            Err(error) => return Err(self.sessions.error(error)),
        }
        let read = |queue: Result<Vec<String>, ZkError>| {
            let queue = self.read(queue)?;
            let own = queue
                .iter()
                .find(|entry| entry.token == token && names::session(entry) == Some(session.id));
            let own = own.cloned();
            Ok((queue, own))
        };
        queues?.into_iter().map(read).collect()
    }

    pub(super) fn read(
        &self,
        queue: Result<Vec<String>, ZkError>,
    ) -> Result<Vec<Entry>, StoreError> {
        match queue {
            Ok(children) => Ok(names::entries(children)),
            Err(ZkError::NoNode) => Ok(Vec::new()),
            Err(error) => Err(self.sessions.error(error)),
        }
    }

    /// Returns the number of an existing entry.
    async fn read_counter(&self, session: &Session, path: &str) -> Result<u64, StoreError> {
        let stat = self.sessions.send(session, session.client.check_stat(path)).await?;
        match stat.map_err(|error| self.sessions.error(error))? {
            Some(stat) => Ok(stat.czxid.cast_unsigned()),
            None => Err(StoreError::new("the claim's queue entry has been removed")),
        }
    }

    /// Returns what an earlier request with an unknown outcome made, if it is all there.
    pub(super) async fn adopt(
        &self,
        session: &Session,
        entry: &NewEntry<'_>,
    ) -> Result<Option<Entered>, StoreError> {
        let found = self.find(session, entry.keys, entry.token).await?;
        let (keys, own) = (entry.keys.iter(), found.iter().filter_map(|(_, own)| own.as_ref()));
        if own.clone().count() < keys.len() {
            // New entries would wait for the remaining ones.
            let left = keys.zip(&found);
            let left = left.filter_map(|(key, (_, own))| Some(self.path_of(key, own.as_ref()?)));
            self.delete(session, &left.collect::<Vec<_>>(), &[]).await?;
            return Ok(None);
        }
        let Some(own) = own.into_iter().next() else { return Ok(None) };
        let path = self.path_of(&entry.keys[0], own);
        let counter = self.read_counter(session, &path).await?;
        let queues = found.into_iter().map(|(queue, _)| queue).collect();
        Ok(Some(Entered { session: session.id, counter, queues }))
    }

    /// Removes these entries, and these nodes of locks unless they have other entries. Returns
    /// whether there were entries to remove, and all of them existed.
    pub(super) async fn delete(
        &self,
        session: &Session,
        paths: &[String],
        parents: &[String],
    ) -> Result<bool, StoreError> {
        let together = !paths.is_empty() && !parents.is_empty();
        if together && self.delete_all(session, paths.iter().chain(parents)).await? {
            return Ok(true);
        }
        // Sent in this order on one connection, so executed in this order.
        let all = paths.iter().chain(parents);
        let deleted: Vec<_> = all.map(|path| session.client.delete(path, None)).collect();
        let replies = self.sessions.send_all(session, deleted).await?;
        let mut all = !paths.is_empty();
        // If a lock's node stays, the servers remove it when it is empty.
        for reply in replies.into_iter().take(paths.len()) {
            match reply {
                Ok(()) => {}
                Err(ZkError::NoNode) => all = false,
                Err(error) => return Err(self.sessions.error(error)),
            }
        }
        Ok(all)
    }

    /// Removes all these nodes in one transaction, or none of them: if one is missing, has children,
    /// or may not be removed. Returns whether it removed them.
    async fn delete_all(
        &self,
        session: &Session,
        paths: impl Iterator<Item = &String>,
    ) -> Result<bool, StoreError> {
        let mut writer = session.client.new_multi_writer();
        for path in paths {
            let added = writer.add_delete(path, None);
            added.map_err(|error| self.sessions.error(error))?;
        }
        let commit = writer.commit();
        let removed = async {
            match commit.await {
                Ok(_) => Ok(true),
                Err(MultiWriteError::OperationFailed { .. }) => Ok(false),
                Err(MultiWriteError::RequestFailed { source }) => Err(source),
            }
        };
        let removed = self.sessions.send(session, removed).await?;
        removed.map_err(|error| self.sessions.error(error))
    }
}
