//! Entries in ZooKeeper. Each lock has one node, which the servers remove when it is empty, and
//! each entry is an ephemeral sequential node below it.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use tokio::time::Instant;
use zookeeper_client::{
    Acls, Client, CreateMode, CreateOptions, Error as ZkError, MultiWriteResult, MultiWriter,
};

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

    fn as_mode(&self, mode: CreateMode) -> CreateOptions<'static> {
        match self.sessions.config.login {
            Some(_) => mode.with_acls(Acls::creator_all()),
            None => mode.with_acls(Acls::anyone_all()),
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

    /// Removes all these nodes in one transaction, or none of them: if one is missing, or has
    /// children. Returns whether it removed them.
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
        match self.sessions.send(session, writer.commit()).await? {
            Ok(_) => Ok(true),
            Err(ZkError::NoNode | ZkError::NotEmpty) => Ok(false),
            Err(error) => Err(self.sessions.error(error)),
        }
    }

    /// Makes the entries, and the nodes of locks that may not exist. The transaction also writes the
    /// nodes of all these locks, because the reply to that tells how many entries each has: the
    /// queue of a free lock need not be read.
    pub(super) async fn make(
        &self,
        session: &Session,
        entry: &NewEntry<'_>,
    ) -> Result<Result<Entered, ZkError>, StoreError> {
        let (client, parents) = (&session.client, &self.sessions.parents);
        let several = entry.keys.len() > 1;
        let name = names::entry(several, entry.sharing, entry.token, session.id);
        let dirs: Vec<_> = entry.keys.iter().map(|key| self.path(key)).collect();
        let (container, now) = (self.as_mode(CreateMode::Container), Instant::now());
        let mut missing: Vec<_> =
            dirs.iter().map(String::as_str).filter(|dir| !parents.exists(dir)).collect();
        let mut first = self.missing_above();
        if several {
            // A transaction would fail for each that exists.
            first.append(&mut missing);
        }
        // Sent in this order on one connection, so executed in this order. If one cannot be made,
        // neither can what is below it.
        let first = first.into_iter().map(|path| client.create(path, b"", &container));
        let first = join_all(first.collect::<Vec<_>>());
        let written = self.write(client, entry, &missing, &dirs, &name);
        let written = written.map_err(|error| self.sessions.error(error))?.commit();
        let replies = async { join(first, written).await.1 };
        let results = match self.sessions.send(session, replies).await? {
            Ok(results) => results,
            Err(error) => {
                match error {
                    ZkError::NodeExists => missing.iter().for_each(|dir| parents.found(dir, now)),
                    ZkError::NoNode => parents.are_gone(&dirs, several || !missing.is_empty()),
                    _ => {}
                }
                return Ok(Err(error));
            }
        };
        let made = results.get(missing.len()..).and_then(|made| Made::read(made, dirs.len()));
        parents.entered(&dirs, now);
        let Some(Made { counter, queues }) = made else {
            return Err(StoreError::new("ZooKeeper sent an unexpected reply"));
        };
        let queues = join_all(dirs.iter().zip(queues).map(async |(dir, queue)| match queue {
            Some(own) => Ok(vec![own]),
            None => self.read(self.sessions.send(session, client.list_children(dir)).await?),
        }));
        let queues = queues.await.into_iter().collect::<Result<_, _>>()?;
        Ok(Ok(Entered { session: session.id, counter, queues }))
    }

    /// The transaction that makes the missing nodes of locks and the entries.
    fn write<'a>(
        &self,
        client: &'a Client,
        entry: &NewEntry<'_>,
        missing: &[&str],
        dirs: &[String],
        name: &str,
    ) -> Result<MultiWriter<'a>, ZkError> {
        let container = self.as_mode(CreateMode::Container);
        let options = self.as_mode(CreateMode::EphemeralSequential);
        let mut writer = client.new_multi_writer();
        for dir in missing {
            writer.add_create(dir, b"", &container)?;
        }
        for dir in dirs {
            writer.add_create(&[dir, "/", name].concat(), entry.value.as_bytes(), &options)?;
        }
        for dir in dirs {
            writer.add_set_data(dir, b"", None)?;
        }
        Ok(writer)
    }

    /// Returns the nodes above those of the locks, the upper ones first, if one may be missing.
    fn missing_above(&self) -> Vec<&str> {
        if !self.sessions.parents.misses_one_above() {
            return Vec::new();
        }
        let chroot = &self.sessions.config.chroot;
        let above = chroot.match_indices('/').skip(1).map(|(end, _)| &chroot[..end]);
        above.chain([chroot.as_str()]).collect()
    }
}

/// What the transaction that makes a claim's entries has done.
struct Made {
    /// The number of the transaction.
    counter: u64,
    /// The claim's entry in each queue, if it has no other entry.
    queues: Vec<Option<Entry>>,
}

impl Made {
    /// Reads the results for so many locks: first the entries, and then the nodes of the locks.
    /// `None` if these are others.
    fn read(results: &[MultiWriteResult], locks: usize) -> Option<Self> {
        let (entries, nodes) = results.split_at_checked(locks)?;
        let mut counter = None;
        let queue = |(entry, node): (&MultiWriteResult, &MultiWriteResult)| {
            let (MultiWriteResult::Create { path, .. }, MultiWriteResult::SetData { stat }) =
                (entry, node)
            else {
                return None;
            };
            // Not that of the entry, which servers do not report here (ZOOKEEPER-4667).
            counter = Some(stat.mzxid.cast_unsigned());
            let (_, id) = path.rsplit_once('/')?;
            let own = names::entries(vec![id.to_owned()]).pop()?;
            Some((stat.num_children == 1).then_some(own))
        };
        let queues = entries.iter().zip(nodes).map(queue).collect::<Option<_>>()?;
        Some(Self { counter: counter?, queues })
    }
}
