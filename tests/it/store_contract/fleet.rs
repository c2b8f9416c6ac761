//! The stores that the suite runs on, and the servers that they need.

mod etcd;
mod mysql;
mod mysql_session;
mod postgres;
mod postgres_session;
mod zookeeper;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockattr::store::{MemoryStore, RedisStore, RedlockStore};
use lockattr_contract::Fleet;
use lockattr_tests::{Cluster, Independents, RedisServer, Sentinels, eventually, for_store};
use tokio::sync::OnceCell;

use super::AnyStore;
use crate::redis::RIGHTS;
pub(super) use etcd::OnEtcd;
pub(super) use mysql::OnMysql;
pub(super) use mysql_session::OnMysqlSessions;
pub(super) use postgres::OnPostgres;
pub(super) use postgres_session::OnPostgresSessions;
pub(super) use zookeeper::OnZooKeeper;

/// The prefix of all locks of the suite.
const PREFIX: &str = "contract:";

/// A prefix for each test, for tests that share one store.
fn next_prefix() -> String {
    static TESTS: AtomicUsize = AtomicUsize::new(0);
    format!("{PREFIX}test {}:", TESTS.fetch_add(1, Ordering::Relaxed))
}

pub(super) struct InMemory(Arc<MemoryStore>);

impl Fleet for InMemory {
    const PAUSED_CLOCK: bool = true;

    async fn start() -> Self {
        Self(Arc::default())
    }

    fn node(&self) -> AnyStore {
        self.0.clone().into()
    }
}

/// A quorum of three in-memory stores.
pub(super) struct QuorumInMemory(Vec<AnyStore>);

impl Fleet for QuorumInMemory {
    const PAUSED_CLOCK: bool = true;

    async fn start() -> Self {
        Self((0..3).map(|_| AnyStore::new(MemoryStore::new())).collect())
    }

    fn node(&self) -> AnyStore {
        AnyStore::new(RedlockStore::new(self.0.iter().cloned()).expect("enough of them"))
    }
}

/// Five Redis servers for all tests. Each test has a database of its own, because all locks of a database have one
/// fencing counter, and the five counters would not agree while other tests use them.
pub(super) struct OnRedlock {
    servers: &'static Independents,
    database: usize,
}

impl Fleet for OnRedlock {
    async fn start() -> Self {
        static SERVERS: OnceCell<Independents> = OnceCell::const_new();
        static TESTS: AtomicUsize = AtomicUsize::new(0);
        let start = async || {
            let node = RedisServer::builder().line("databases 1000");
            Independents::builder().servers(node).start().await
        };
        let servers = SERVERS.get_or_init(start).await;
        Self { servers, database: TESTS.fetch_add(1, Ordering::Relaxed) }
    }

    fn node(&self) -> AnyStore {
        // The servers have just started. With `durable=true` the store need not wait out the leases
        // that a server might have forgotten.
        let url = self.servers.url_with("durable=true");
        let url = url.replacen('?', &format!("/{}?", self.database), 1);
        AnyStore::new(RedlockStore::open(&for_store(&url)).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        for server in self.servers.nodes() {
            no_subscribers_left(server, subscriber).await;
        }
    }
}

/// One Redis server for all tests. Each test has a database of its own, because all locks of a database have one
/// fencing counter, and some tests know its next numbers.
pub(super) struct OnRedis {
    server: &'static RedisServer,
    database: usize,
}

impl Fleet for OnRedis {
    async fn start() -> Self {
        static SERVER: OnceCell<RedisServer> = OnceCell::const_new();
        static TESTS: AtomicUsize = AtomicUsize::new(0);
        let server = RedisServer::builder().line("databases 1000");
        let server = SERVER.get_or_init(|| server.start()).await;
        Self { server, database: TESTS.fetch_add(1, Ordering::Relaxed) }
    }

    fn node(&self) -> AnyStore {
        let url = self.server.url().replacen('?', &format!("{}?", self.database), 1);
        AnyStore::new(RedisStore::open(&for_store(&url)).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        no_subscribers_left(self.server, subscriber).await;
    }
}

/// One Redis server for all tests, used by a user that has exactly the rights that the docs name.
/// The keys of each test have a prefix of their own, because that user may not choose a database.
pub(super) struct WithLeastRights {
    server: &'static RedisServer,
    prefix: String,
}

impl Fleet for WithLeastRights {
    async fn start() -> Self {
        static SERVER: OnceCell<RedisServer> = OnceCell::const_new();
        Self { server: SERVER.get_or_init(least_rights).await, prefix: next_prefix() }
    }

    fn prefix(&self) -> String {
        self.prefix.clone()
    }

    fn node(&self) -> AnyStore {
        let url = self.server.url_as("locker", "s3cret");
        AnyStore::new(RedisStore::open(&for_store(&url)).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        no_subscribers_left(self.server, subscriber).await;
    }

    /// Checks the ACL log: scripts continue after some errors, so a missing right may only suppress
    /// a notification.
    async fn finish(&self) {
        let log: Vec<HashMap<String, redis::Value>> =
            self.server.cli().await.query(&["ACL", "LOG"]).await;
        let refused = log.iter().map(|entry| format!("{:?}", entry["object"]));
        // The client sends its name and version for display. Redis 7.0 has no right for that.
        let refused: Vec<_> = refused.filter(|what| !what.contains("setinfo")).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}

async fn least_rights() -> RedisServer {
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
    server
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
        AnyStore::new(RedisStore::open(&for_store(&self.0)).expect("a good URL"))
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
    eventually("its connection is closed", gone).await;
}

/// One cluster for all tests. The keys of a test share a hash tag and so a slot. Keys in several
/// slots have tests of their own.
pub(super) struct OnCluster {
    cluster: &'static Cluster,
    test: usize,
}

impl Fleet for OnCluster {
    async fn start() -> Self {
        static TESTS: AtomicUsize = AtomicUsize::new(0);
        let cluster = Cluster::shared().await;
        Self { cluster, test: TESTS.fetch_add(1, Ordering::Relaxed) }
    }

    fn prefix(&self) -> String {
        format!("{PREFIX}{{test {}}}:", self.test)
    }

    fn node(&self) -> AnyStore {
        // Six servers and many other tests share this machine. If a reply takes a second, the
        // connection is replaced and its waiters lose their places in the queue. Managers ask again
        // for theirs; these claims do not.
        let url = self.cluster.url_with("heartbeat=60s");
        AnyStore::new(RedisStore::open(&for_store(&url)).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        let channels = format!("lockattr:inbox:{subscriber:016x}*");
        for node in self.cluster.nodes() {
            let cli = node.cli().await;
            let words = ["PUBSUB", "SHARDCHANNELS", &channels];
            let gone = async || cli.query::<Vec<String>>(&words).await.is_empty();
            eventually("its connection is closed", gone).await;
        }
    }
}
