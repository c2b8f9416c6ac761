//! Makes the entries of a claim, and the nodes of its locks with them.

use futures_util::future::{join, join_all};
use tokio::time::Instant;
use zookeeper_client::{Client, CreateMode, Error as ZkError, MultiWriteResult, MultiWriter};

use super::entries::Zookeeper;
use super::names;
use super::session::Session;
use crate::engines::sequenced::{Entered, Entry, NewEntry};
use crate::store::StoreError;

/// How often a node is made in the transaction of its first entry, before it is made by itself.
const ATTEMPTS_AT_ONCE: usize = 2;

impl Zookeeper {
    /// Makes the entries, and the nodes of locks that may not exist. The transaction also writes the
    /// nodes of all these locks, because the reply to that tells how many entries each has: the
    /// queue of a free lock need not be read.
    pub(super) async fn make(
        &self,
        session: &Session,
        entry: &NewEntry<'_>,
        attempts: usize,
    ) -> Result<Result<Entered, ZkError>, StoreError> {
        let (client, parents) = (&session.client, &self.sessions.parents);
        let several = entry.keys.len() > 1;
        let name = names::entry(several, entry.sharing, entry.token, session.id);
        let dirs: Vec<_> = entry.keys.iter().map(|key| self.path(key)).collect();
        let (container, now) = (self.as_mode(CreateMode::Container), Instant::now());
        // A transaction that makes a node fails if the node exists, and one that does not fails if it is
        // gone. Where others make and remove it all the time, or some of several exist, it is made
        // before.
        let before = several || attempts >= ATTEMPTS_AT_ONCE;
        let is_missing = |dir: &&str| attempts >= ATTEMPTS_AT_ONCE || !parents.exists(dir);
        let mut missing: Vec<_> = dirs.iter().map(String::as_str).filter(is_missing).collect();
        let mut first = self.missing_above();
        if before {
            first.append(&mut missing);
        }
        // Sent in this order on one connection, so executed in this order. If one cannot be made,
        // neither can what is below it.
        let first = first.into_iter().map(|path| client.create(path, b"", &container));
        let first = join_all(first.collect::<Vec<_>>());
        let written = self.write(client, entry, &missing, &dirs, &name);
        let written = written.map_err(|error| self.sessions.error(error))?.commit();
        let replies = async {
            let (first, written) = join(first, written).await;
            written.map_err(|error| match error.into() {
                ZkError::NoNode if attempts >= ATTEMPTS_AT_ONCE => why_missing(&first),
                error => error,
            })
        };
        let results = match self.sessions.send(session, replies).await? {
            Ok(results) => results,
            Err(error) => {
                match error {
                    ZkError::NodeExists => missing.iter().for_each(|dir| parents.found(dir, now)),
                    ZkError::NoNode | ZkError::NoAuth => {
                        parents.are_gone(&dirs, before || !missing.is_empty());
                    }
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

/// Why the last of these nodes is not there: it was removed again, or one of them may not be made. The servers refuse a
/// user without the right to make one even if it exists.
fn why_missing<T>(made: &[Result<T, ZkError>]) -> ZkError {
    let may_not = |made: &Result<T, ZkError>| matches!(made, Err(ZkError::NoAuth));
    match made.last() {
        Some(Err(ZkError::NoNode | ZkError::NoAuth)) if made.iter().any(may_not) => ZkError::NoAuth,
        _ => ZkError::NoNode,
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
