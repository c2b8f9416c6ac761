//! The store in a ZooKeeper ensemble.

mod config;
mod entries;
#[cfg(fuzzing)]
pub mod fuzzed;
mod make;
mod names;
mod parents;
mod recipe;
mod session;
mod size;
mod sweep;
mod under_way;

use std::fmt;

use url::Url;

use super::sequenced::{SequencedStore, sequenced_store};
use crate::Error;
use crate::lock::server_options::ServerOptions;
use crate::store::url::StoreUrl;
use config::Config;
use entries::Zookeeper;

/// Locks in a ZooKeeper ensemble (3.6 and later).
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a
/// `zookeeper://h1,h2,h3/chroot` URL, or by hand. Locks are stored below the node `chroot`, or
/// `/lockattr` if the URL names none. The query may set `session_timeout`, `connect_timeout` and
/// `response_timeout`.
///
/// A lock is a node under its name, with `/` and whatever else servers refuse written as `%2F`.
/// Each claim that holds it or waits has an ephemeral sequential node below it. Their order decides
/// whose turn it is, so no process overtakes. A waiter watches the node before its own, so a
/// release notifies one process. The nodes of locks are *containers*. A release also removes the
/// lock's node if no other claim has an entry there; the node of a lock that is used again within a
/// second stays until it has rested for one. What a process leaves behind when it dies, the servers
/// remove when it has been empty for a while (`znode.container.checkIntervalMs`, a minute by
/// default), and the `chroot` with the last of them. The counter of a fencing token is the *zxid* of the entry.
///
/// A claim for several keys writes all of them into each of its entries, and servers accept no
/// request beyond `jute.maxbuffer` (1 MiB by default): about 170 keys of twenty letters. A larger
/// claim is [refused](Error::InvalidOptions). If the servers' limit is lower, they close the
/// connection.
///
/// # How long a lease is
///
/// A store has one session, on a thread of its own. All its entries belong to that session. As long
/// as the process lives, a lease ends after its `ttl`, as in every store. When the process dies or
/// is cut off, its locks become free when the servers end the session: `session_timeout` (20 s)
/// after they last heard from the process, rounded up to their next tick, **whatever the `ttl`**. A
/// `ttl` can therefore be half of `session_timeout` at most: a holder can rely on its session only
/// for that long. The same limit applies to `hold_at_least`, which ends with the session if the
/// process ends.
///
/// The servers limit `session_timeout` to 2 to 20 of their ticks (of 2 s by default). If they grant
/// less than the store requests, connecting fails, and reports it. Set it to four ticks or more.
///
/// # Many requests at once
///
/// At most 64 acquires are under way at a time. The others wait in the process, where releases and
/// renewals overtake them. A connection counts as silent only if it has carried no reply at all for
/// `response_timeout`. So a store that is busy makes callers wait, and [`Contended`](Error::Contended)
/// when their wait budget ends, but loses no lease.
///
/// # Which fault loses what
///
/// * A server dies: the client connects to another. The outcome of open requests is unknown, as
///   always.
/// * The leader or most servers fail: nothing is granted or renewed until there is a leader. A
///   holder is notified [`Lost`](Error::Lost) at the end of its TTL. After an election all sessions
///   start anew, so no other process acquires the lock before.
/// * A server is cut off from the leader: it still answers its clients' pings, which prove nothing.
///   A renewal is a transaction that only a majority commits.
/// * The session ends, or the process could not reach any server for half of `session_timeout`: all
///   holds of this store are `Lost` at once, and all waiters enter the queue again in a new
///   session.
/// * A process is paused for longer than a session: other processes may hold its locks. It learns
///   this before its next step, because its clock ran on. With fencing tokens, a resource can
///   reject its late writes.
///
/// # Rights
///
/// Without a login, nodes are open to `world:anyone`. With `user:password@` in the URL (`digest`
/// authentication), only clients with the same login can access them. On a `chroot` that already
/// exists, the user needs the rights `crd`. Each acquire writes the lock's node, whose data is empty:
/// nodes that another program made there need the right `w`, and lose their data. The store does not
/// support TLS.
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
    /// Makes the store that `url` names. Does not contact the servers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL is not valid, or if this process was forked from one
    /// that had a connection to ZooKeeper: the client's one thread, which all connections need,
    /// stays in the parent.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(&urls, &query, &ServerOptions::default())
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: &ServerOptions,
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
