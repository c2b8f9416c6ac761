//! The store in an etcd cluster.

mod batch;
mod call;
mod config;
mod connect;
mod connection;
mod core;
mod failure;
#[cfg(fuzzing)]
pub mod fuzzed;
mod keep_alive;
mod messages;
mod names;
mod read;
mod recipe;
mod request_order;
mod requests;
mod session;
mod tls;
mod watches;

use std::fmt;

use url::Url;

use super::sequenced::{SequencedStore, sequenced_store};
use crate::Error;
use crate::lock::settings::ServerSettings;
use crate::store::url::StoreUrl;
use config::Config;
use recipe::Etcd;

/// Locks in an etcd cluster (3.4 and later).
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from an `etcd://h1,h2,h3` URL, or by
/// hand. Name all members: it connects to the one that leads, and to another when that one falls
/// silent. The query may set `session_timeout`, `connect_timeout`, `response_timeout`, `heartbeat`,
/// and `tls=true` with `ca`, `cert` and `key` (with the feature `tls`).
///
/// A lock is a range of keys under its name (with `/` written as `%2F`): one for each claim that holds
/// it or waits. Whose turn it is is read off the order in which they were made, so no process overtakes,
/// and a waiter watches the one before: a release wakes one process. The counter of a fencing token
/// is the *create revision* of the claim's key. Taking a free lock is one request, giving it back
/// another. A claim for several keys takes sixty at most, or `too many operations` is the answer.
///
/// # How long a lease is
///
/// A store has one etcd lease, its session, kept alive on a thread of its own, and all its keys hang on
/// it. As long as the process lives, a lock's lease ends after its `ttl` as in every store. When the
/// process dies or is cut off, its locks are free when etcd ends the session: `session_timeout` (20 s)
/// after it last heard of it, and an election timeout more if there was an election, **whatever the
/// `ttl`**. For that reason a `ttl` can be five eighths of `session_timeout` at most: for so long the
/// session is known to live at any time. So can `hold_at_least`, which lasts no longer than the
/// session if the process ends.
///
/// `session_timeout` is in whole seconds. etcd makes one that is shorter than one and a half of its
/// election timeouts longer; a warning event reports it.
///
/// # What is lost under which fault
///
/// * A member dies or stands still: the store goes to another. What was being asked is unknown, as
///   always.
/// * The leader does, or most members do: nothing is granted or renewed until there is a leader. Who
///   holds meanwhile is notified [`Lost`](Error::Lost) at the end of its TTL; a new leader begins the
///   time of all sessions anew, so no other process gets in before.
/// * A member is cut off from the others: it proves nothing. A renewal is a read that a majority
///   confirms.
/// * The session ends, is revoked by hand, or could not be kept: all holds of this store are `Lost` at
///   once, all who wait get in the queue again in a new session.
/// * A process stands still for longer than a session: its locks are another's, and it learns so
///   before its next step, as its clock ran on. Fencing tokens tell a resource.
/// * A leader stands still for longer than a session, and is replaced: etcd before 3.4.31 and 3.5.13
///   may revoke sessions that its successor has kept, when it comes back (etcd issue 15247). Their
///   holds are `Lost` as soon as etcd tells, but somebody else may be told first.
/// * A cluster is restored from a backup: revisions begin again where the backup ends, and fencing
///   tokens with them, unless it was restored with `--bump-revision`.
///
/// # Rights
///
/// With `user:password@` in the URL it authenticates itself, and again when the token ends. The user
/// needs to read and write the keys that begin with the manager's `prefix` and with
/// `lockattr/session/`, where each session has a key of its own:
///
/// ```text
/// etcdctl role grant-permission locker --prefix=true readwrite lock:
/// etcdctl role grant-permission locker --prefix=true readwrite lockattr/session/
/// ```
///
/// ```
/// use lockattr::store::EtcdStore;
///
/// let store = EtcdStore::open("etcd://app:secret@etcd1,etcd2,etcd3/?session_timeout=30s")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct EtcdStore {
    store: SequencedStore<Etcd>,
    address: String,
}

impl EtcdStore {
    /// The store that `url` names. Does not contact the servers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL makes no sense.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(&urls, &query, ServerSettings::default())
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: ServerSettings,
    ) -> Result<Self, Error> {
        let config = Config::read(urls, query, defaults)?;
        let address = config.address.clone();
        Ok(Self { store: SequencedStore::new(Etcd::new(config)), address })
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("address", &self.address).finish_non_exhaustive()
    }
}

sequenced_store!(EtcdStore);
