//! The store in one Redis or Valkey server, or in a cluster of them.
//!
//! A lock is a plain string with a TTL, so a `SET NX PX` client in any language is kept out by it
//! and keeps us out. What compares and changes in one step is a Lua script.

mod batch;
mod call;
mod cluster;
mod combiner;
mod config;
mod connect;
mod connection_slot;
mod contended;
mod counters;
mod free;
#[cfg(fuzzing)]
pub mod fuzzed;
mod heartbeat;
mod held_locks;
mod listener;
mod native;
mod node;
mod notifications;
mod replicas;
mod request;
mod restart;
mod scripts;
mod sentinels;
mod servers;
mod several;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::time::Instant;
use url::Url;

use super::redlock::Member;
use crate::lock::settings::ServerSettings;
use crate::store::url::{StoreUrl, shown};
use crate::store::{
    AcquireOutcome, AcquireRequest, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store, StoreError, Subscriber, Waiting,
};
use crate::{Error, FencingToken, HeldLock, Holder};
use call::Call;
use cluster::Cluster;
use config::Config;
use free::Free;
use node::Effect;
use request::Answer;
use scripts::Scripts;
use servers::{Place, Replied, Servers};
use several::unknown;
pub(in crate::engines) use tls::is_asked;

/// The fencing counter: one per server, not one per key, so that memory does not grow with the
/// number of keys ever locked. In a cluster one per slot, with a tag behind.
const FENCE: &str = "lockattr:fence";

/// What the names of the lines begin with: of locks that have a hash tag, and of those that become
/// one. Apart, so that `a` and `{a}` have not the same line.
const QUEUE: &str = "lockattr:line:";
const QUEUE_OF: &str = "lockattr:line-of:";

/// What the names of waiters begin with: what each wants, for as long as its process asks again.
const WAITER: &str = "lockattr:waiter:";

/// Locks in one Redis or Valkey server (7.0 and later), or in a cluster of them, over a small pool of
/// connections to each.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `redis://` or
/// `redis+cluster://` URL, or by hand. All commands for one key travel on one connection, so that they
/// keep their order.
///
/// A lock is a string under prefix and key, or a sorted set if it is shared; while others wait for
/// it, `lockattr:line:…` is their wait queue, and `lockattr:waiter:…` says what each of them wants.
/// Besides, there is one key for all locks, the fencing counter `lockattr:fence`. A user with these
/// rights is enough (with another prefix, that one in place of `lock:`):
///
/// ```text
/// ACL SETUSER locker on >… resetkeys ~lock:* ~lockattr:* resetchannels &lockattr:inbox:* -@all
///     +hello +ping +select +script|load +evalsha +subscribe +publish +get +getdel +set +incr
///     +incrby +del +exists +pttl +pexpire +time +zadd +zcard +zcount +zrange +zrem
///     +zremrangebyscore +zrank +zscore
/// ```
///
/// With `+scan` besides, it may [list what is held](crate::LockManager::held_locks).
///
/// Over a lock that no process waits for there are no scripts: `SET … NX PX` and `INCR` take it, and one
/// command gives it back. Tasks that ask at the same time share a pipeline, and one `INCRBY` numbers
/// their acquisitions. While claims wait, the value has a mark before it (`queued=1 until=… kept=… `),
/// and the key may outlive the lease: the process that reads values by hand reads the end of the lease there.
///
/// With one right more, a release costs the server a third: `+delex` where it is Redis 8.4 or later,
/// `+delifeq` where it is Valkey 9.0 or later, `+cad` where it is Tair. Who has all rights need not
/// think of it. Which of them there is, is found out anew with each connection.
///
/// # Sentinel
///
/// `redis+sentinel://h1,h2,h3/master-name` asks the sentinels for the master each time it connects:
/// all at once, of several answers that after the last failover. It listens to them, so a master
/// that was replaced is left at once, even if it goes on answering; without their messages, after a
/// `heartbeat`. A waiter in the queue gets in the queue again at the new one, who holds renews there.
///
/// The server's user needs `+role` besides the rights above. A user of the sentinels needs
/// `resetkeys resetchannels &+switch-master -@all +hello +ping +subscribe +sentinel|master
/// +sentinel|get-master-addr-by-name`.
///
/// Redis replicates after it has answered. A lock that a master granted and had not sent to the
/// replica that took its place when it died is free there, and can be granted a second time: its
/// holder is notified [`Lost`](crate::Error::Lost) by its next renewal, a third of the TTL later. A
/// master that is cut off from its sentinels and not from its clients goes on granting until they
/// hear of the failover. `min-replicas-to-write 1` and `min-replicas-max-lag` on the servers end
/// that sooner. [Fencing tokens](crate::FencingToken) grow over a failover as long as the servers'
/// clocks are no further apart than it takes, because the counter never falls behind the clock: a
/// resource that checks them refuses the first of the two.
///
/// A release can be lost in the same way: the lock is taken at the new master, by no process, until its
/// lease ends there.
///
/// # Replicas
///
/// With `?replicas=1` an acquisition or a renewal counts only when one replica has acknowledged it
/// (`WAIT`, in the same trip; the user needs `+wait`), within half of the `response_timeout`. Else
/// it is unknown: an [`Error::Store`] that says how many did; an acquisition is undone then, a
/// renewal tried again until the lease ends. So the process that holds a lock holds it on one replica too,
/// and no lock is lost with the master, if that replica takes its place.
///
/// `WAIT` is no consensus: the sentinels may choose another replica, which has not got it yet. They
/// cannot where `replicas` is the number of all replicas; but then one that is down is enough for
/// nothing to be granted. With two replicas, `replicas=1` stands the loss of any one server.
///
/// A release waits for no replica: one that is lost with its master costs no more than the rest of
/// the lease, and without replicas it would be an error after a body that has done its work.
///
/// # In a cluster
///
/// `redis+cluster://db-1,db-2,db-3` names any of the nodes; the others are found through them
/// (`?tls=true` for TLS on all). A lock, its line and its counter `lockattr:fence:{…}` are in one hash
/// slot, that of prefix and key or of their hash tag, and move with it; so there is one counter for each
/// slot that ever had a lock, at most 16,384. Several keys are taken in the order of their slots: those
/// in one slot in one step, and those taken before are given back when another is refused. A claim
/// for keys in several slots is granted nothing while it waits, and can be overtaken; put keys
/// that belong together into one slot by a hash tag, `{tenant}:a` and `{tenant}:b`.
///
/// * A master that fails is replaced by the cluster, from which on its locks are at the new one; until
///   then they are an error of this store, and all others work. Replication is asynchronous: what the
///   old master granted in its last moments, the new one may not know, and grant again.
/// * While a slot moves key by key, its leases are renewed, but its locks are neither taken nor given
///   back: with an error after `response_timeout`. Those in the queue keep their places, unless a lock is
///   given back before the slot has moved entirely: then they come again in any order.
/// * A process has one connection more to each node, and a subscription for each slot of its locks.
///   Beyond 1,024 at a node, those that no process needs are given up.
///
/// Beside the above, the user of a cluster needs these rights:
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
    /// The store that `url` names; its query may set `connections`, `connect_timeout`,
    /// `response_timeout`, `heartbeat`, `replicas` and, with TLS, the files `ca`, `cert` and `key`,
    /// which are read now. Does not contact the server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL makes no sense, or one of its files cannot be used.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(urls, &query, ServerSettings::default())
    }

    pub(crate) fn at(
        urls: Vec<Url>,
        query: &[(String, String)],
        defaults: ServerSettings,
    ) -> Result<Self, Error> {
        if urls[0].scheme() == "redis+cluster" {
            let scripts = Arc::new(Scripts::of_a_cluster());
            let cluster = Cluster::open(&urls, query, defaults, &scripts)?;
            let (servers, address) = (Servers::of_a_cluster(cluster), shown(&urls));
            return Ok(Self { servers, address, scripts });
        }
        Ok(Self::of(&Config::read(urls, query, defaults)?))
    }

    /// One of a quorum, whose other servers take its place while it may have forgotten leases, none
    /// of them longer than this.
    pub(in crate::engines) fn one_of_many(
        url: Url,
        query: &[(String, String)],
        defaults: ServerSettings,
        forgets: Option<Duration>,
        member: Member,
    ) -> Result<Self, Error> {
        let config = Config::read(vec![url], query, defaults)?;
        Ok(Self::of(&Config { forgets, member: Some(member), ..config }))
    }

    fn of(config: &Config) -> Self {
        let (scripts, address) = (Arc::new(Scripts::new()), config.address.clone());
        Self { servers: Servers::one(config, &scripts), address, scripts }
    }

    /// Asks for all that a claim names.
    async fn ask(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, waiting, .. } = asked;
        let Some(place) = self.servers.connection_for(claim) else {
            return Box::pin(self.ask_several(asked)).await;
        };
        let waits = *waiting != Waiting::Not;
        // A holder hears which process waits for its lock.
        self.servers.hear(place, claim, false).await?;
        let may_have_set = match self.servers.take_free(place, asked).await? {
            Free::Taken(taken) => return Ok(taken),
            Free::AskTheScript { may_have_set } => may_have_set,
        };
        let answer = self.ask_script(place, asked, waits).await;
        answer.map_err(|error| if may_have_set { unknown(error) } else { error })
    }

    /// Asks the script for what a claim names in one place, and lets it wait if it `waits`.
    async fn ask_script(
        &self,
        place: Place,
        asked: &AcquireRequest,
        waits: bool,
    ) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, waiting, .. } = asked;
        // Before it is queued: a grant that is delivered to no process would be passed on.
        self.servers.hear(place, claim, waits).await?;
        if waits {
            claim.enters_queue(*ttl, *waiting);
        }
        // In a box, or every acquisition of a free lock would carry the room for this.
        Box::pin(self.ask_in_place(place, asked)).await
    }

    /// Asks for what a claim names in one place.
    async fn ask_in_place(
        &self,
        place: Place,
        asked: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let script = request::acquire(&self.scripts, asked, &self.servers.fence(place));
        loop {
            let sent = Instant::now();
            let replied = self.servers.invoke(place, Effect::Take, &script).await?;
            let Replied { answer: reply, notifications, live } = replied;
            let (answer, clock) = match request::granted(reply.value, asked).ok_or_else(nonsense)? {
                Answer::Whole(answer, clock) => (answer, clock),
                // It took out as many dead waiters as one run may.
                Answer::Unfinished => continue,
            };
            if let Some(micros) = clock {
                notifications.saw_clock(sent, micros);
            }
            if let AcquireOutcome::Acquired { fencing, .. } = answer {
                let (counters, slot) = self.servers.counter(place);
                counters.saw(slot, fencing.counter());
                live.raised.raise(slot);
                // That another has it is a fact, whatever the replicas have.
                reply.replicated?;
            }
            if !matches!(answer, AcquireOutcome::Acquired { contended: false, .. }) {
                notifications.contended.note(asked.claim.key().name());
            }
            return Ok(answer);
        }
    }
}

impl Store for RedisStore {
    async fn acquire(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.ask(asked).await
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
        if let [releasing] = releases
            && let Some(place) = self.servers.connection_for(&releasing.claim)
            && let Some(answer) = self.servers.give_back_free(place, releasing).await.transpose()
        {
            return vec![answer];
        }
        Box::pin(self.release_all(releases)).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let mut script = Call::new(&self.scripts.holder, 1, key.name().len());
        script.arg(key.name());
        let place = self.servers.place(key);
        let replied = self.servers.invoke(place, Effect::Look, &script).await?;
        match replied.answer.value {
            Value::Nil => Ok(None),
            reply => request::held_by(reply).map(Some).ok_or_else(nonsense),
        }
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        self.held_locks_of_all(prefix).await
    }

    async fn next_token(&self, key: &LockKey) -> Result<Option<FencingToken>, StoreError> {
        self.servers.next_number(self.servers.place(key)).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        self.force_release_all(key).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.servers.ping().await
    }

    fn answered_since(&self, key: &LockKey, since: Instant) -> bool {
        self.servers.answered_since(self.servers.place(key), since)
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
        is_ours(key.name()).then(|| "names like this are the store's own".into())
    }
}

/// Whether the store itself uses names like this.
fn is_ours(name: &str) -> bool {
    [FENCE, QUEUE, QUEUE_OF, WAITER].iter().any(|ours| name.starts_with(ours))
}

fn nonsense() -> StoreError {
    StoreError::new("the server's answer makes no sense")
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.address)
            .field("connections", &self.servers.connections())
            .finish_non_exhaustive()
    }
}
