//! The stores that the suite runs on, and the managers that it plays: each has a subscriber and
//! claims that wait.

mod etcd;
mod mysql;
mod mysql_session;
mod postgres;
mod postgres_session;
mod zookeeper;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::FencingToken;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, Grant, MemoryStore, Notification, RedisStore,
    RedlockStore, ReleaseOutcome, ReleaseRequest, RenewOutcome, RenewRequest, Sharing, Subscriber,
    Subscription, Waiting,
};
use lockattr_tests::{Cluster, Independents, RedisServer, Sentinels, eventually};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(super) use zookeeper::OnZooKeeper;

use super::asked::{LABEL, PREFIX, key, set_key_prefix};
use super::{AnyStore, TTL};
use crate::redis::RIGHTS;
pub(super) use etcd::OnEtcd;
pub(super) use mysql::OnMysql;
pub(super) use mysql_session::OnMysqlSessions;
pub(super) use postgres::OnPostgres;
pub(super) use postgres_session::OnPostgresSessions;

/// One store, seen from as many processes as a test needs.
pub(super) trait Fleet {
    async fn start() -> Self;

    /// Returns the store as one more process sees it.
    fn node(&self) -> AnyStore;

    /// Waits until the store knows that the process of this subscriber is gone, if the store relies
    /// on that.
    async fn wait_until_gone(&self, subscriber: u64);

    /// Checks after a test that the servers recorded nothing wrong.
    async fn saw_nothing_wrong(&self) {}
}

pub(super) struct InMemory(Arc<MemoryStore>);

impl Fleet for InMemory {
    async fn start() -> Self {
        set_key_prefix("");
        Self(Arc::default())
    }

    fn node(&self) -> AnyStore {
        self.0.clone().into()
    }

    async fn wait_until_gone(&self, _inbox: u64) {}
}

/// A quorum of three in-memory stores.
pub(super) struct QuorumInMemory(Vec<AnyStore>);

impl Fleet for QuorumInMemory {
    async fn start() -> Self {
        Self((0..3).map(|_| AnyStore::new(MemoryStore::new())).collect())
    }

    fn node(&self) -> AnyStore {
        AnyStore::new(RedlockStore::new(self.0.iter().cloned()).expect("enough of them"))
    }

    async fn wait_until_gone(&self, _inbox: u64) {}
}

/// A quorum of five Redis servers.
pub(super) struct OnRedlock(Independents);

impl Fleet for OnRedlock {
    async fn start() -> Self {
        Self(Independents::start(5).await)
    }

    fn node(&self) -> AnyStore {
        // The servers have just started. With `durable=true` the store need not wait out the leases
        // that a server might have forgotten.
        let url = self.0.url_with("durable=true");
        AnyStore::new(RedlockStore::open(&url).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        for server in self.0.nodes() {
            no_subscribers_left(server, subscriber).await;
        }
    }
}

pub(super) struct OnRedis(RedisServer);

impl Fleet for OnRedis {
    async fn start() -> Self {
        set_key_prefix("");
        Self(RedisServer::start().await)
    }

    fn node(&self) -> AnyStore {
        AnyStore::new(RedisStore::open(&self.0.url()).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        no_subscribers_left(&self.0, subscriber).await;
    }
}

/// One Redis server, used by a user that has exactly the rights that the docs name.
pub(super) struct WithLeastRights(RedisServer);

impl Fleet for WithLeastRights {
    async fn start() -> Self {
        // Listing the held locks needs one more right, which the docs name too.
        let rights = format!("{RIGHTS} ~{PREFIX}* +scan");
        // The default user has a password, so the store cannot use it by mistake.
        let server = RedisServer::builder().password("harness").user("locker", "s3cret", &rights);
        let server = server.start().await;
        // Rights for commands that only newer servers have, as the docs describe.
        let cli = server.cli().await;
        for newer in ["+delex", "+delifeq"] {
            // A server that lacks the command rejects the right.
            let _known = cli.try_query::<()>(&["ACL", "SETUSER", "locker", newer]).await;
        }
        Self(server)
    }

    fn node(&self) -> AnyStore {
        let url = self.0.url_as("locker", "s3cret");
        AnyStore::new(RedisStore::open(&url).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        no_subscribers_left(&self.0, subscriber).await;
    }

    /// Checks the ACL log: scripts continue after some errors, so a missing right may only suppress
    /// a notification.
    async fn saw_nothing_wrong(&self) {
        let log: Vec<HashMap<String, redis::Value>> =
            self.0.cli().await.query(&["ACL", "LOG"]).await;
        let refused = log.iter().map(|entry| format!("{:?}", entry["object"]));
        // The client sends its name and version for display. Redis 7.0 has no right for that.
        let refused: Vec<_> = refused.filter(|what| !what.contains("setinfo")).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}

/// One Sentinel fleet for all tests, because it takes seconds to start. Each test has a database of
/// its own.
pub(super) struct OnSentinel(String);

static SENTINELS: OnceCell<Sentinels> = OnceCell::const_new();
static DATABASE: AtomicUsize = AtomicUsize::new(0);

async fn sentinels() -> &'static Sentinels {
    let server = RedisServer::builder().line("databases 1000");
    let start = async || {
        let sentinels = Sentinels::builder().servers(server).start().await;
        let cli = sentinels.master().await.cli().await;
        // The master counts a replica only after its first message, which may take a second.
        cli.query::<()>(&["SET", "lockattr:test:fence", "replicated"]).await;
        assert_eq!(cli.query::<usize>(&["WAIT", "2", "20000"]).await, 2);
        sentinels
    };
    SENTINELS.get_or_init(start).await
}

impl OnSentinel {
    async fn with(setting: &str) -> Self {
        let database = DATABASE.fetch_add(1, Ordering::Relaxed);
        Self(sentinels().await.url_with(&format!("db={database}&{setting}")))
    }
}

impl Fleet for OnSentinel {
    async fn start() -> Self {
        Self::with("replicas=0").await
    }

    fn node(&self) -> AnyStore {
        AnyStore::new(RedisStore::open(&self.0).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        no_subscribers_left(sentinels().await.master().await, subscriber).await;
    }
}

/// The same fleet, where each lease must reach both replicas before it counts.
pub(super) struct WithReplicas(OnSentinel);

impl Fleet for WithReplicas {
    async fn start() -> Self {
        Self(OnSentinel::with("replicas=2").await)
    }

    fn node(&self) -> AnyStore {
        self.0.node()
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        self.0.wait_until_gone(subscriber).await;
    }
}

/// Returns once this subscriber has no subscription left.
async fn no_subscribers_left(server: &RedisServer, subscriber: u64) {
    let (cli, channel) = (server.cli().await, format!("lockattr:inbox:{subscriber:016x}"));
    let gone = async || {
        let (_, subscribers) =
            cli.query::<(String, i64)>(&["PUBSUB", "NUMSUB", channel.as_str()]).await;
        subscribers == 0
    };
    eventually(TTL, "its connection is closed", gone).await;
}

/// One cluster for all tests. The keys of a test share a hash tag and so a slot. Keys in several
/// slots have tests of their own.
pub(super) struct OnCluster(&'static Cluster);

impl Fleet for OnCluster {
    async fn start() -> Self {
        static TESTS: AtomicUsize = AtomicUsize::new(0);
        let cluster = Cluster::shared().await;
        set_key_prefix(&format!("{{test {}}}:", TESTS.fetch_add(1, Ordering::Relaxed)));
        Self(cluster)
    }

    fn node(&self) -> AnyStore {
        // Six servers and many other tests share this machine. If a reply takes a second, the
        // connection is replaced and its waiters lose their places in the queue. Managers ask again
        // for theirs; these claims do not.
        let url = self.0.url_with("connect_timeout=10s&response_timeout=10s&heartbeat=60s");
        AnyStore::new(RedisStore::open(&url).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        let channels = format!("lockattr:inbox:{subscriber:016x}*");
        for node in self.0.nodes() {
            let cli = node.cli().await;
            let words = ["PUBSUB", "SHARDCHANNELS", &channels];
            let gone = async || cli.query::<Vec<String>>(&words).await.is_empty();
            eventually(TTL, "its connection is closed", gone).await;
        }
    }
}

/// In place of a name: any lock may be contended.
pub(super) const ANY: &str = "any";

/// A manager as a store sees it.
pub(super) struct Manager {
    store: AnyStore,
    pub(super) subscriber: Arc<Subscriber>,
    contended: Arc<Mutex<Vec<String>>>,
}

impl Manager {
    pub(super) fn on(store: &AnyStore) -> Self {
        let contended = Arc::<Mutex<Vec<String>>>::default();
        let reported = contended.clone();
        let on_contended = move |name: Option<&str>| {
            reported.lock().unwrap().push(name.unwrap_or(ANY).to_owned());
        };
        let subscriber = Arc::new(Subscriber::new(on_contended));
        store.subscribe(&subscriber);
        Self { store: store.clone(), subscriber, contended }
    }

    /// Returns an exclusive claim for one lock.
    pub(super) fn claim_for(&self, named: &str) -> Waiter {
        self.claim_shared(&[named], Sharing::Exclusive)
    }

    pub(super) fn claim_shared(&self, named: &[&str], sharing: Sharing) -> Waiter {
        let mut keys = named.iter().map(|named| key(named));
        let first = keys.next().expect("a claim has a key");
        let claim = Arc::new(Claim::of(&self.subscriber, first, keys, sharing, LABEL));
        let expected = self.subscriber.subscribe(claim.token());
        let (store, was_queued) = (self.store.clone(), AtomicBool::new(false));
        Waiter { store, claim, expected, ttl: TTL, notified_only: false, was_queued }
    }

    /// Returns the names of the locks that the store reported as contended.
    pub(super) fn contended(&self) -> Vec<String> {
        self.contended.lock().unwrap().clone()
    }
}

/// A claim, and the notifications that its manager receives for it.
pub(super) struct Waiter {
    store: AnyStore,
    pub(super) claim: Arc<Claim>,
    expected: Subscription,
    ttl: Duration,
    notified_only: bool,
    was_queued: AtomicBool,
}

impl Waiter {
    /// Makes this waiter one that is only notified when the lock is free, and not granted it.
    pub(super) fn notified_only(self) -> Self {
        Self { notified_only: true, ..self }
    }

    pub(super) fn with_ttl(self, ttl: Duration) -> Self {
        Self { ttl, ..self }
    }

    fn request(&self, waiting: Waiting) -> AcquireRequest {
        AcquireRequest::new(self.claim.clone(), self.ttl).waiting(waiting)
    }

    fn queue_request(&self) -> AcquireRequest {
        let again = self.was_queued.swap(true, Ordering::Relaxed);
        self.request(if self.notified_only { Waiting::Told { again } } else { Waiting::Queued })
    }

    /// Acquires the lock. Returns the fencing token and whether the lock is contended.
    pub(super) async fn acquire(&self) -> (FencingToken, bool) {
        match self.store.acquire(&self.queue_request()).await {
            Ok(AcquireOutcome::Acquired { fencing, contended }) => (fencing, contended),
            other => panic!("{:?} was not granted: {other:?}", self.claim),
        }
    }

    /// Joins the queue, or asks again while queued. Returns the delay until the next request.
    pub(super) async fn enqueue(&self) -> Duration {
        match self.store.acquire(&self.queue_request()).await {
            Ok(AcquireOutcome::Held { queued: Some(again), .. }) => again,
            other => panic!("{:?} is not queued: {other:?}", self.claim),
        }
    }

    /// Asks once. Returns whether the claim holds the lock now.
    pub(super) async fn try_acquire(&self) -> bool {
        match self.store.acquire(&self.request(Waiting::Not)).await.unwrap() {
            AcquireOutcome::Acquired { .. } => true,
            AcquireOutcome::Held { queued, .. } => {
                assert_eq!(queued, None, "queued without having requested it");
                false
            }
        }
    }

    /// Waits for the lock as a manager does: for a grant, or for a notification to ask again.
    pub(super) async fn wait_for_grant(&self) -> Grant {
        let granted = async {
            loop {
                let asked = match self.expected.next().await {
                    Notification::Granted(grant) => return grant,
                    Notification::AskAgain(at) => at,
                };
                sleep_until(asked).await;
                loop {
                    let since = Instant::now();
                    match self.store.acquire(&self.queue_request()).await {
                        Ok(AcquireOutcome::Acquired { fencing, contended }) => {
                            return Grant::new(fencing, since, contended);
                        }
                        Ok(_) => break,
                        // The outcome is unknown, and no notification will come: a manager asks
                        // again.
                        Err(_) => sleep(TTL / 100).await,
                    }
                }
            }
        };
        let granted = timeout(TTL / 2, granted).await;
        let grant = granted.unwrap_or_else(|_| panic!("{:?} was not notified", self.claim));
        assert!(grant.since <= Instant::now(), "the lease began at the notification or earlier");
        assert!(self.is_holder().await, "notified, but not of a grant");
        grant
    }

    /// Waits for the grant without asking again.
    pub(super) async fn next_grant(&self) -> Grant {
        match timeout(TTL / 2, self.expected.next()).await.expect("notified") {
            Notification::Granted(grant) => grant,
            Notification::AskAgain(_) => panic!("not granted, but notified to retry"),
        }
    }

    /// Waits for the notification that says when to ask again.
    pub(super) async fn next_ask_again(&self) -> Instant {
        match timeout(TTL / 2, self.expected.next()).await.expect("notified") {
            Notification::AskAgain(at) => at,
            other @ Notification::Granted(_) => panic!("granted: {other:?}"),
        }
    }

    /// Returns whether the store counts this claim as a holder.
    pub(super) async fn is_holder(&self) -> bool {
        let renewal = [RenewRequest::new(self.claim.clone(), self.ttl)];
        self.store.renew(&renewal).await.remove(0).unwrap() == RenewOutcome::Renewed
    }

    /// Releases the lock, or leaves the queue. Returns whether the claim held the lock.
    pub(super) async fn release(&self) -> bool {
        self.release_after(Duration::ZERO).await
    }

    pub(super) async fn release_after(&self, after: Duration) -> bool {
        let releasing = [ReleaseRequest::new(self.claim.clone()).after(after)];
        self.store.release(&releasing).await.remove(0).unwrap() == ReleaseOutcome::Released
    }
}
