//! The store in a ZooKeeper ensemble.

mod config;
mod entries;
#[cfg(fuzzing)]
pub mod fuzzed;
mod names;
mod recipe;
mod session;
mod size;

use std::fmt;

use url::Url;

use super::sequenced::{SequencedStore, sequenced_store};
use crate::Error;
use crate::lock::settings::ServerSettings;
use crate::store::url::StoreUrl;
use config::Config;
use entries::Zookeeper;

/// Locks in a ZooKeeper ensemble (3.6 and later).
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `zookeeper://h1,h2,h3/chroot`
/// URL, or by hand. Locks are kept below the node `chroot`, or `/lockattr` if the URL names none;
/// its query may set `session_timeout`, `connect_timeout` and `response_timeout`.
///
/// A lock is a node under its name (with `/` and what else servers refuse written as `%2F`), and who
/// holds or waits has an ephemeral sequential node below it. Whose turn it is can be read off their
/// order, so no process overtakes, and a waiter watches the one before: a release wakes one process.
/// The nodes of locks are *containers*: the servers remove one when it has been empty for a while
/// (`znode.container.checkIntervalMs`, a minute by default), and the `chroot` with the last of
/// them. The counter of a fencing token is the *zxid* of the entry.
///
/// A claim for several keys says all of them in each of its entries, and servers take no request beyond
/// `jute.maxbuffer` (1 MiB by default): some 170 keys of twenty letters. One that would be larger is
/// [refused](Error::InvalidOptions); where the servers' limit is lower, they close the connection.
///
/// # How long a lease is
///
/// A store has one session, on a thread of its own, and all its entries hang on it. As long as the
/// process lives, a lease ends after its `ttl` as in every store. When the process dies or is cut
/// off, its locks are free when the servers end the session: `session_timeout` (20 s) after they
/// last heard of it, rounded up to their next tick, **whatever the `ttl`**. For that reason a `ttl` can
/// be half of `session_timeout` at most: only for so long can a holder rely on its session. So can
/// `hold_at_least`, which lasts no longer than the session if the process ends.
///
/// The servers bound `session_timeout` to 2 to 20 of their ticks (of 2 s by default). If they give
/// less than asked for, connecting fails, and reports it; it should be four ticks or more.
///
/// # What is lost under which fault
///
/// * A server dies: the client goes to another. What was being asked is unknown, as always.
/// * The leader dies, or most servers do: nothing is granted or renewed until there is a leader. Who
///   holds meanwhile is notified [`Lost`](Error::Lost) at the end of its TTL; after an election all
///   sessions begin anew, so no other process gets in before.
/// * A server is cut off from the leader: it goes on answering its clients' pings, and proves
///   nothing by that. A renewal is a transaction that only a majority commits.
/// * The session ends, or the process could not reach any server for half of its time: all holds of
///   this store are `Lost` at once, all who wait get in the queue again in a new session.
/// * A process stands still for longer than a session: its locks are another's, and it learns so
///   before its next step, as its clock ran on. Fencing tokens tell a resource.
///
/// # Rights
///
/// Without a login, nodes are open to `world:anyone`. With `user:password@` in the URL (`digest`
/// authentication), only who has the same login can touch them; a `chroot` that is there already
/// needs the rights `crd` for it. The client speaks no TLS here.
///
/// ```
/// use lockattr::store::ZookeeperStore;
///
/// let store = ZookeeperStore::open("zookeeper://app:secret@zk1,zk2,zk3/locks?session_timeout=30s")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct ZookeeperStore {
    store: SequencedStore<Zookeeper>,
    address: String,
}

impl ZookeeperStore {
    /// The store that `url` names. Does not contact the servers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL makes no sense, or if this process was forked from one that had
    /// a connection to ZooKeeper: the client's one thread, which all connections need, is in the parent.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(&urls, &query, &ServerSettings::default())
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: &ServerSettings,
    ) -> Result<Self, Error> {
        let config = Config::read(urls, query, defaults)?;
        session::check_not_forked()?;
        let address = config.address.clone();
        Ok(Self { store: SequencedStore::new(Zookeeper::new(config)), address })
    }
}

impl fmt::Debug for ZookeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZookeeperStore").field("address", &self.address).finish_non_exhaustive()
    }
}

sequenced_store!(ZookeeperStore);
