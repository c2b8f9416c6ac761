//! The store in an etcd cluster.

mod batch;
mod call;
mod config;
mod connect;
mod connection;
mod core;
mod dialer;
mod entry_names;
mod failure;
#[cfg(fuzzing)]
pub mod fuzzed;
mod history;
mod keep_alive;
mod login;
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
use crate::lock::server_options::ServerOptions;
use crate::store::url::StoreUrl;
use config::Config;
use recipe::Etcd;

/// Locks in an etcd cluster (3.4 and later).
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from an `etcd://h1,h2,h3` URL, or
/// by hand. Name all members: the store connects to the leader, and to another member when the
/// leader does not reply. The query may set `session_timeout`, `connect_timeout`,
/// `response_timeout`, `heartbeat`, and `tls=true` with `ca`, `client_cert` and `client_key` (with the feature
/// `tls`).
///
/// A lock is a range of keys under its name (with `/` written as `%2F`), with one key for each
/// claim that holds it or waits. The order in which the keys were made decides whose turn it is, so
/// no process overtakes. A waiter watches the key before its own, so a release notifies one
/// process. The counter of a fencing token is the *create revision* of the claim's key. Acquiring a
/// free lock takes one request, releasing it another. A store uses the names of its keys again, and
/// the text of a key says which claim has it now. A claim may have sixty keys at most; with
/// more, etcd replies `too many operations`.
///
/// # How long a lease is
///
/// A store has one etcd lease, its session, kept alive on a thread of its own. All its keys belong
/// to that lease. As long as the process lives, a lock's lease ends after its `ttl`, as in every
/// store. When the process dies or is cut off, its locks become free when etcd ends the session:
/// `session_timeout` (20 s) after it last heard from the process, plus an election timeout if there
/// was an election, **whatever the `ttl`**. A `ttl` can therefore be five eighths of
/// `session_timeout` at most: the session is known to live for that long at any time. The same
/// limit applies to `hold_at_least`, which ends with the session if the process ends.
///
/// `session_timeout` is in whole seconds, a day at most. etcd lengthens it to at least one and a half of its
/// election timeouts; a warning event reports that.
///
/// # Many requests at once
///
/// At most 64 acquires are under way at a time. The others wait in the process, where releases and
/// renewals overtake them. A connection counts as silent only if it has carried no reply at all for
/// `response_timeout`. So a store that is busy makes callers wait, and [`Contended`](Error::Contended)
/// when their wait budget ends, but loses no lease.
///
/// # Connections
///
/// A store has one connection, to the leader, whether it is idle, its locks are contended or its
/// claims wait: each watch is a stream in it. All runtimes of the process share it. While the store
/// looks for the leader, it has one connection to each member for a moment.
///
/// # Behind a proxy
///
/// The URL may name etcd's own `grpc-proxy`, also one with a `--namespace`. It keeps a lease alive at its
/// next half second, so leave `response_timeout` at 1 s or more. All processes that share locks have to use the same
/// namespace.
///
/// # Compaction
///
/// etcd keeps every change on its disk and in its memory until it is compacted, and does not do that
/// by itself: start the members with `--auto-compaction-mode=periodic` and
/// `--auto-compaction-retention=1h`, or less for many locks. An acquisition and its release are two
/// changes, of some hundred bytes. Without compaction the database reaches its quota (2 GiB by
/// default), and the members then refuse all writes. A lock does not become slower with its own
/// acquisitions, but with the number of *processes* that ever held it since the last compaction: each
/// session has names of its own. A store that opens its first session in a cluster of 100,000
/// changes or more, and finds that it was never compacted, emits a warning event.
///
/// # Which fault loses what
///
/// * A member dies or is paused: the store connects to another. The outcome of open requests is
///   unknown, as always.
/// * The leader or most members fail: nothing is granted or renewed until there is a leader. A
///   holder is notified [`Lost`](Error::Lost) at the end of its TTL. A new leader starts the time
///   of all sessions anew, so no other process acquires the lock before.
/// * A member is cut off from the others: it proves nothing. A renewal is a read that a majority
///   confirms.
/// * The session ends, is revoked by hand, or could not be kept alive: all holds of this store are
///   `Lost` at once, and all waiters enter the queue again in a new session.
/// * A process is paused for longer than a session: other processes may hold its locks. It learns
///   this before its next step, because its clock ran on. With fencing tokens, a resource can
///   reject its late writes.
/// * A leader is paused for longer than a session, and is replaced: when it comes back, etcd before
///   3.4.31 and 3.5.13 may revoke sessions that its successor kept alive (etcd issue 15247). Their
///   holds are `Lost` as soon as etcd reports it, but the next waiter may be notified first.
/// * A member is paused while the leader changes: etcd before 3.4.42, 3.5.28 and 3.6.9 may answer a
///   linearizable read from before the pause (etcd issue 20418). A renewal may then confirm a lock
///   that was taken from its holder.
/// * A cluster is restored from a backup: revisions start again where the backup ends, and fencing
///   tokens with them, unless it was restored with `--bump-revision`.
///
/// # Rights
///
/// With `user:password@` in the URL the store authenticates itself, and again when the token
/// expires. The user needs to read and write the keys that begin with the manager's `prefix` and
/// with `lockattr/session/`, where each session has a key of its own:
///
/// ```text
/// etcdctl role grant-permission locker --prefix=true readwrite lock:
/// etcdctl role grant-permission locker --prefix=true readwrite lockattr/session/
/// ```
///
/// With a [credentials provider](ServerOptions::credentials), the store asks it whenever it
/// authenticates: for each connection, and when the servers no longer accept its token. Tokens end
/// when they expire and when the user's password changes. If the servers refuse the answer, the
/// provider is asked again, and a different answer is tried once. If the provider fails, or does not
/// answer within `connect_timeout`, the last login that the servers accepted is tried. No lock is
/// lost while that login or the provider's answer is valid, because the session does not depend on a
/// token.
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
    config: Config,
}

impl EtcdStore {
    /// Makes the store that `url` names. Does not contact the servers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL is not valid.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(&urls, &query, ServerOptions::default())
    }

    /// Makes a store with the program's own `Endpoint`s, one for each member of the cluster: with
    /// its TLS settings, keep-alives and limits.
    ///
    /// It takes endpoints and not a `Channel`, because a channel over several members hides which of
    /// them answers. The store sends its requests to the leader, and leaves a member that is silent.
    /// It replaces the endpoints' `connect_timeout`. A `timeout` of an endpoint applies to each
    /// request, so leave that to `options`. For clusters with authentication, give `options` a
    /// [credentials provider](ServerOptions::credentials). Does not contact the servers.
    ///
    /// ```
    /// use lockattr::store::{Credentials, EtcdStore, ServerOptions};
    /// use tonic::transport::Endpoint;
    ///
    /// let members = ["http://etcd1:2379", "http://etcd2:2379", "http://etcd3:2379"];
    /// let options = ServerOptions::new().credentials(|| async {
    ///     Ok::<_, std::io::Error>(Credentials::new("app", "secret"))
    /// });
    /// let store = EtcdStore::from_endpoints(members.map(Endpoint::from_static), options)?;
    /// # let _ = store;
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if there is no endpoint, or an option is out of range.
    pub fn from_endpoints(
        endpoints: impl IntoIterator<Item = tonic::transport::Endpoint>,
        options: ServerOptions,
    ) -> Result<Self, Error> {
        Ok(Self::with(Config::of_endpoints(endpoints, options)?))
    }

    /// The same store with another `session_timeout`: 20 s by default, 2 s to one day in whole seconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lockattr::store::EtcdStore;
    ///
    /// let store = EtcdStore::open("etcd://etcd1,etcd2,etcd3/")?;
    /// let store = store.with_session_timeout(Duration::from_secs(30))?;
    /// # let _ = store;
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if it is shorter than 2 s, longer than a day, or not in whole seconds.
    pub fn with_session_timeout(self, session_timeout: std::time::Duration) -> Result<Self, Error> {
        Ok(Self::with(self.config.with_session_timeout(session_timeout)?))
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: ServerOptions,
    ) -> Result<Self, Error> {
        Ok(Self::with(Config::read(urls, query, defaults)?))
    }

    fn with(config: Config) -> Self {
        config.warn_about_plaintext();
        Self { store: SequencedStore::new(Etcd::new(config.clone())), config }
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("address", &self.config.address).finish_non_exhaustive()
    }
}

sequenced_store!(EtcdStore);
