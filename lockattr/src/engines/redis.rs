//! The store in one Redis or Valkey server, or in a cluster of them.
//!
//! A lock is a plain string with a TTL, so it excludes a `SET NX PX` client in any language, and is
//! excluded by it. Every step that compares and changes is a Lua script.

mod batch;
mod call;
mod clients;
mod cluster;
mod cluster_node;
mod combiner;
mod config;
mod connect;
mod connection_slot;
mod counters;
mod endpoint;
mod free;
#[cfg(fuzzing)]
pub mod fuzzed;
mod heartbeat;
mod held_locks;
mod listener;
mod login;
mod mark_done;
mod native;
mod node;
mod notifications;
mod other_protocol;
mod replicas;
mod request;
mod restart;
mod scripts;
mod sentinels;
mod servers;
mod several;
mod tls;
mod unproven;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, Value};
use tokio::time::Instant;
use url::Url;

use super::redlock::Member;
use crate::lock::server_options::ServerOptions;
use crate::store::url::{StoreUrl, shown};
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store, StoreError, Subscriber, Waiting,
};
use crate::{Error, FencingToken, HeldLock, HeldLocks, Holder, HolderId};
use call::Call;
use cluster::Cluster;
use config::Config;
use endpoint::Endpoint;
use free::FreeOutcome;
use node::Effect;
use request::AcquireReply;
use scripts::Scripts;
use servers::{Route, RoutedReply, Servers};
use several::unknown;
pub(in crate::engines) use tls::uses_tls;

/// The fencing counter: one per server, not per key, so that memory does not grow with the number
/// of keys ever locked. A cluster has one per slot, with a hash tag appended.
const FENCE: &str = "lockattr:fence";

/// Prefixes of wait queues: for locks with a hash tag, and for locks whose name becomes one. They
/// differ, so that `a` and `{a}` have separate queues.
const QUEUE: &str = "lockattr:line:";
const QUEUE_OF: &str = "lockattr:line-of:";

/// The prefix of waiters' records. Each says what a waiter wants, and lasts while its process asks
/// again.
const WAITER: &str = "lockattr:waiter:";

/// Locks in one Redis or Valkey server (7.0 and later), or in a cluster of them, over a small pool of
/// connections to each.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `redis://` or
/// `redis+cluster://` URL, or from the program's own Redis clients: by
/// [`from_client`](Self::from_client), [`from_sentinels`](Self::from_sentinels) or
/// [`from_cluster`](Self::from_cluster). All commands for one key use one connection, so they keep
/// their order. (With `replicas`, renewals have a connection of their own.)
///
/// A lock is a string under prefix and key, or a sorted set if it is shared. While claims wait for
/// it, `lockattr:line:…` is their wait queue, and `lockattr:waiter:…` says what each of them wants.
/// All locks together have one more key, the fencing counter `lockattr:fence`. A user with these
/// rights can lock (with another prefix, replace `lock:`):
///
/// ```text
/// ACL SETUSER locker on >… resetkeys ~lock:* ~lockattr:* resetchannels &lockattr:inbox:* -@all
///     +hello +ping +select +script|load +evalsha +subscribe +publish +get +getdel +set +incr
///     +incrby +del +exists +pttl +pexpire +time +zadd +zcard +zcount +zrange +zrem
///     +zremrangebyscore +zrank +zscore
/// ```
///
/// With `+scan` it may also [list the held locks](crate::LockManager::held_locks).
///
/// A lock that no process waits for needs no script: `SET … NX PX` and `INCR` acquire it, and one
/// command releases it. Tasks that send requests at the same time share a pipeline, and one
/// `INCRBY` counts their acquisitions. While claims wait, the value has a mark before it
/// (`queued=1 until=… kept=… `), and the key may outlive the lease. A program that reads values
/// itself finds the end of the lease in the mark.
///
/// A key that is [done](Store::mark_done) is a lock whose value ends with the word ` done=1`, and
/// whose lease ends with the period.
///
/// One more right reduces what a release costs the server to a third: `+delex` for Redis 8.4 or
/// later, `+delifeq` for Valkey 9.0 or later, `+cad` for Tair. A user with all rights has it
/// already. Each new connection finds out which of these commands the server has.
///
/// # Connections
///
/// The store opens its own connections, also with a client of the program's. Each tokio runtime that
/// uses the store has these, and keeps them while they work:
///
/// | server | connections |
/// |---|---|
/// | one server | `connections`: 1 by default, which carries commands and messages |
/// | with `replicas` | one more: 2 by default for commands, and 1 for renewals |
/// | without RESP3 (behind some proxies) | one more, for messages |
/// | Sentinel | the same to the master, and 1 to each sentinel for its messages |
/// | cluster | `connections` to each master that has a lock of this process, and 1 more to each of them for messages; with `replicas` one more |
/// | quorum | the same as for one server to each of them |
///
/// At each `heartbeat`, and before it connects to a master, the store also opens a connection to
/// each sentinel for two questions.
///
/// # Credentials that rotate
///
/// A provider that is set with [`ServerOptions::credentials`] or
/// [`LockManagerBuilder::credentials`](crate::LockManagerBuilder::credentials) is asked for each
/// connection, and at each `heartbeat` for all of them. If its answer has changed and the
/// server accepts it, the connection is replaced, so a service that closes connections whose token is
/// too old finds new ones. If the server refuses that login, the connection stays as it is until the
/// next heartbeat.
///
/// If the server refuses the login of a new connection, the provider is asked again at once, and
/// then at each retry of a caller. So while the provider's answer is valid sooner than a caller's
/// wait ends, a password that changes under load fails no acquisition, even if the server cuts
/// all connections. A [`release`](crate::LockGuard::release) that is in flight on a connection
/// that is cut returns an [`Error::Store`], because its outcome is unknown; it is sent again in the
/// background.
///
/// # Sentinel
///
/// `redis+sentinel://h1,h2,h3/master-name` asks all sentinels for the master each time it connects.
/// If their replies differ, it uses the one after the last failover. It also subscribes to them, so
/// it leaves a replaced master at once, even if that still replies; if a message is lost, after a
/// `heartbeat`. A waiter joins the queue again at the new master, and a holder renews there.
///
/// The server's user needs `+role` besides the rights above. A user of the sentinels needs
/// `resetkeys resetchannels &+switch-master -@all +hello +ping +subscribe +sentinel|master
/// +sentinel|get-master-addr-by-name`.
///
/// Redis replicates after it has replied. If a master dies before it has sent a granted lock to the
/// replica that takes its place, the lock is free there and can be granted a second time. Its first
/// holder gets [`Lost`](crate::Error::Lost) from its next renewal, a third of the TTL later. A
/// master that is cut off from its sentinels, but not from its clients, goes on granting until the
/// clients learn of the failover. `min-replicas-to-write 1` and `min-replicas-max-lag` on the
/// servers end that sooner. [Fencing tokens](crate::FencingToken) grow across a failover as long as
/// the servers' clocks differ by less than the failover takes, because the counter never falls
/// behind the clock. A resource that checks them refuses the first of the two holders.
///
/// A release can be lost in the same way: no process holds the lock, but the new master keeps it
/// until the lease ends.
///
/// # Replicas
///
/// With `?replicas=1` an acquisition or a renewal counts only when one replica has acknowledged it
/// within half of the `response_timeout` (`WAIT`, in the same round trip; the user needs `+wait`).
/// Otherwise its outcome is unknown: an [`Error::Store`] says how many replicas acknowledged it, an
/// acquisition is undone, and a renewal is retried until the lease ends. So each held lock is also
/// on a replica, and is not lost with the master if that replica takes its place.
///
/// `WAIT` is not consensus: the sentinels may choose another replica, which does not have the lock
/// yet. They cannot if `replicas` is the number of all replicas, but then no lock is granted while
/// one of them is down. With two replicas, `replicas=1` tolerates the loss of any one server.
///
/// A release waits for no replica. If it is lost with its master, that costs at most the rest of
/// the lease. If it waited and replicas were down, it would be an error after the body has done its
/// work.
///
/// # In a cluster
///
/// `redis+cluster://db-1,db-2,db-3` names any of the nodes, through which the others are found
/// (`?tls=true` for TLS on all). A lock, its queue and its counter `lockattr:fence:{…}` are in one
/// hash slot, that of prefix and key or of their hash tag, and move with it. So each slot that ever
/// had a lock has one counter, at most 16,384. Several keys are acquired in the order of their
/// slots, those in one slot in one step. If one is refused, those acquired before are released. A
/// claim for keys in several slots is granted nothing while it waits, and can be overtaken. Put
/// keys that belong together into one slot by a hash tag, `{tenant}:a` and `{tenant}:b`.
///
/// * If a master fails, the cluster replaces it, and its locks are at the new one. Until then
///   requests for them fail with an error of this store; all other locks work. Replication is
///   asynchronous: the new master may not know what the old one granted in its last moments, and
///   grant it again.
/// * While a slot moves key by key, its leases are renewed, but its locks can neither be acquired
///   nor released: such a request fails after `response_timeout`. Waiters keep their places, unless
///   a lock is released before the slot has moved entirely: then they queue again in any order.
/// * A process has one more connection to each node, and a subscription for each slot of its locks.
///   Beyond 1,024 subscriptions at a node, it drops those that no claim needs.
///
/// The user of a cluster also needs these rights:
///
/// ```text
/// +cluster|slots +asking +ssubscribe +sunsubscribe +spublish
/// ```
///
/// ```
/// use lockattr::store::RedisStore;
///
/// let store = RedisStore::open("redis://:secret@db.example/2?connections=4")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct RedisStore {
    servers: Servers,
    address: String,
    scripts: Arc<Scripts>,
}

impl RedisStore {
    /// Opens the store that `url` names. Does not contact the server.
    ///
    /// The query may set `connections`, `connect_timeout`, `response_timeout`, `heartbeat`,
    /// `replicas` and, with TLS, the files `ca`, `client_cert` and `client_key`, which are read now.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL is invalid, or one of its files cannot be used.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(urls, &query, ServerOptions::default())
    }

    pub(crate) fn at(
        urls: Vec<Url>,
        query: &[(String, String)],
        defaults: ServerOptions,
    ) -> Result<Self, Error> {
        if urls[0].scheme() == "redis+cluster" {
            let scripts = Arc::new(Scripts::of_a_cluster());
            let cluster = Cluster::open(&urls, query, defaults, &scripts)?;
            let (servers, address) = (Servers::of_a_cluster(cluster), shown(&urls));
            return Ok(Self { servers, address, scripts });
        }
        Ok(Self::of(&Config::read(urls, query, defaults)?))
    }

    /// Opens one server of a quorum. `forgets` is the longest lease that it may lose by a restart;
    /// until that is over, the other servers take its place.
    pub(in crate::engines) fn one_of_many(
        url: Url,
        query: &[(String, String)],
        defaults: ServerOptions,
        forgets: Option<Duration>,
        member: Member,
    ) -> Result<Self, Error> {
        let config = Config::read(vec![url], query, defaults)?;
        Ok(Self::of(&Config { forgets, member: Some(member), ..config }))
    }

    /// The same with a client of the program's.
    pub(in crate::engines) fn client_of_many(
        client: &Client,
        options: ServerOptions,
        forgets: Option<Duration>,
        member: Member,
    ) -> Result<Self, Error> {
        let endpoint = Endpoint::of_client(client.get_connection_info().clone());
        let config = Config::at(endpoint, options)?;
        Ok(Self::of(&Config { forgets, member: Some(member), ..config }))
    }

    fn of(config: &Config) -> Self {
        let (scripts, address) = (Arc::new(Scripts::new()), config.address.clone());
        Self { servers: Servers::one(config, &scripts), address, scripts }
    }

    /// Acquires all locks of a claim.
    async fn try_acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, waiting, .. } = request;
        let Some(route) = self.servers.single_route(claim) else {
            return Box::pin(self.acquire_on_routes(request)).await;
        };
        let may_wait = *waiting != Waiting::Not;
        // Subscribe first: a holder is notified when a process waits for its lock.
        self.servers.ensure_subscribed(route, claim, false).await?;
        let may_have_set = match self.servers.acquire_free(route, request).await? {
            FreeOutcome::Acquired(acquired) => return Ok(acquired),
            FreeOutcome::NeedsScript { may_have_set } => may_have_set,
        };
        let outcome = self.acquire_by_script(route, request, may_wait).await;
        outcome.map_err(|error| if may_have_set { unknown(error) } else { error })
    }

    /// Acquires a claim's locks on one route with the script. `may_wait`: the claim may join the
    /// queue.
    async fn acquire_by_script(
        &self,
        route: Route,
        request: &AcquireRequest,
        may_wait: bool,
    ) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, waiting, .. } = request;
        // Subscribe before it is queued: a grant that no connection receives goes to the next
        // waiter.
        self.servers.ensure_subscribed(route, claim, may_wait).await?;
        if may_wait {
            claim.enter_queue(*ttl, *waiting);
        }
        // Boxed: otherwise the future of every acquisition of a free lock would include this one.
        Box::pin(self.acquire_on_route(route, request)).await
    }

    /// Runs the script for a claim's locks on one route, until it has finished.
    async fn acquire_on_route(
        &self,
        route: Route,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let script = request::acquire(&self.scripts, request, &self.servers.fence(route));
        loop {
            let sent = Instant::now();
            let routed = self.servers.invoke(route, Effect::Acquire, &script).await?;
            let RoutedReply { reply, notifications, live } = routed;
            let (outcome, clock) =
                match request::granted(reply.value, request).ok_or_else(|| live.distrusted())? {
                    AcquireReply::Complete(outcome, clock) => (outcome, clock),
                    // The run removed as many dead waiters as one run may.
                    AcquireReply::Unfinished => continue,
                };
            if let Some(micros) = clock {
                notifications.saw_clock(sent, micros);
            }
            if let AcquireOutcome::Acquired { fencing, .. } = outcome {
                let (counters, slot) = self.servers.counter(route);
                counters.record(slot, fencing.counter());
                live.raised.raise(slot);
                // Only a grant needs replicas: that another claim holds the lock is a fact.
                reply.replicated?;
            }
            if !matches!(outcome, AcquireOutcome::Acquired { contended: false, .. }) {
                notifications.contended.note(request.claim.key().name());
            }
            return Ok(outcome);
        }
    }
}

impl Store for RedisStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.try_acquire(request).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.servers.subscribe(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.renew_all(renewals).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        if let [release] = releases
            && let Some(route) = self.servers.single_route(&release.claim)
            && let Some(outcome) = self.servers.release_free(route, release).await.transpose()
        {
            return vec![outcome];
        }
        Box::pin(self.release_all(releases)).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let mut script = Call::new(&self.scripts.holder, 1, key.name().len());
        script.arg(key.name());
        let route = self.servers.route(key);
        let routed = self.servers.invoke(route, Effect::Read, &script).await?;
        match routed.reply.value {
            Value::Nil => Ok(None),
            Value::Int(-1) => Err(held_locks::not_a_lock(key)),
            reply => {
                let holder = request::held_by(reply).ok_or_else(|| routed.live.distrusted());
                holder.map(Some)
            }
        }
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        Ok(self.held_locks_of_all(prefix).await?.locks)
    }

    async fn list_held_locks(&self, prefix: &str) -> Result<HeldLocks, StoreError> {
        self.held_locks_of_all(prefix).await
    }

    async fn next_token(&self, key: &LockKey) -> Result<Option<FencingToken>, StoreError> {
        self.servers.next_token(self.servers.route(key)).await
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        self.force_release_of(key, *holder).await
    }

    async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        self.mark(claim, lasts).await
    }

    fn refuses_done(&self) -> Option<String> {
        None
    }

    fn keeps_long_values(&self) -> bool {
        true
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.servers.ping().await
    }

    fn address(&self) -> Option<String> {
        Some(self.address.clone())
    }

    fn notes_departures(&self) -> bool {
        true
    }

    fn supports_companions(&self) -> bool {
        true
    }

    fn supports_downgrade(&self) -> bool {
        true
    }

    fn needs_io(&self) -> bool {
        true
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        is_ours(key.name()).then(|| "the store reserves names like this for itself".into())
    }

    /// It has shared locks, permits and several keys.
    fn refuses_claim(&self, _claim: &Claim) -> Option<String> {
        None
    }
}

/// Returns whether the name is one of the store's own.
fn is_ours(name: &str) -> bool {
    [FENCE, QUEUE, QUEUE_OF, WAITER].iter().any(|ours| name.starts_with(ours))
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.address)
            .field("connections", &self.servers.connections())
            .finish_non_exhaustive()
    }
}
