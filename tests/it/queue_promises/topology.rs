//! The servers that the tests of the suite share, and how another program takes a lock away there.

use lockattr_tests::{
    Cluster, Engine, Etcd, Independents, MariaDb, PostgresServer, RedisServer, Replicated,
    Sentinels, Servers, ZooKeeper,
};
use tokio::sync::OnceCell;

use crate::engine_faults;

/// Servers that keep a wait queue.
#[allow(async_fn_in_trait, reason = "one task acquires")]
pub(crate) trait Topology: Engine {
    /// Returns the servers of the whole test program. Tests differ in their keys.
    async fn shared() -> &'static Self;

    /// Takes the lock from its holder, as another program would. `held` is what the store holds for
    /// that lock alone.
    async fn steal(&self, key: &str, held: &[String]);
}

async fn delete(master: &RedisServer, key: &str) {
    let gone = master.cli().await.query::<u32>(&["DEL", &format!("lock:{key}")]).await;
    assert_eq!(gone, 1, "it was not held");
}

impl Topology for RedisServer {
    async fn shared() -> &'static Self {
        engine_faults::redis::SHARED.get_or_init(<Self as Engine>::start).await
    }

    async fn steal(&self, key: &str, _: &[String]) {
        delete(self, key).await;
    }
}

impl Topology for Cluster {
    async fn shared() -> &'static Self {
        Self::shared().await
    }

    async fn steal(&self, key: &str, _: &[String]) {
        delete(self.node_of(&format!("lock:{key}")).await, key).await;
    }
}

impl Topology for Sentinels {
    async fn shared() -> &'static Self {
        static SHARED: OnceCell<Sentinels> = OnceCell::const_new();
        SHARED.get_or_init(<Self as Engine>::start).await
    }

    async fn steal(&self, key: &str, _: &[String]) {
        delete(self.master().await, key).await;
    }
}

impl Topology for Replicated {
    async fn shared() -> &'static Self {
        static SHARED: OnceCell<Replicated> = OnceCell::const_new();
        SHARED.get_or_init(<Self as Engine>::start).await
    }

    async fn steal(&self, key: &str, _: &[String]) {
        delete(self.master(), key).await;
    }
}

impl Topology for Independents {
    /// The smallest quorum.
    async fn shared() -> &'static Self {
        static SHARED: OnceCell<Independents> = OnceCell::const_new();
        SHARED.get_or_init(|| Self::start(3)).await
    }

    async fn steal(&self, key: &str, _: &[String]) {
        for node in self.servers() {
            delete(node, key).await;
        }
    }
}

impl Topology for ZooKeeper {
    async fn shared() -> &'static Self {
        engine_faults::zookeeper::SHARED.get_or_init(<Self as Engine>::start).await
    }

    async fn steal(&self, key: &str, held: &[String]) {
        let holder = held.iter().find(|path| path.contains(&format!("{key}/")));
        self.delete(holder.expect("it is held")).await;
    }
}

impl Topology for Etcd {
    async fn shared() -> &'static Self {
        engine_faults::etcd::SHARED.get_or_init(<Self as Engine>::start).await
    }

    async fn steal(&self, key: &str, held: &[String]) {
        let holder = held.iter().find(|path| path.contains(&format!("{key}/")));
        self.ctl(&["del", holder.expect("it is held")]).await;
    }
}

impl Topology for PostgresServer {
    async fn shared() -> &'static Self {
        engine_faults::postgres::SHARED.get_or_init(<Self as Engine>::start).await
    }

    async fn steal(&self, key: &str, _: &[String]) {
        self.run(&format!("delete from lockattr_locks where name = 'lock:{key}'")).await;
    }
}

impl Topology for MariaDb {
    async fn shared() -> &'static Self {
        engine_faults::mysql::SHARED.get_or_init(<Self as Engine>::start).await
    }

    /// With SQL, as an operator would who has no program with this library.
    async fn steal(&self, key: &str, _: &[String]) {
        let name = format!("lock:{key}");
        let token =
            format!("SELECT token FROM lockattr_v2_locks WHERE name = '{name}' AND token <> ''");
        let token: Vec<String> = self.query("lockattr", &token).await;
        let (length, zero) = (name.len(), 0);
        let item = format!("0001{length:08}{name}{}{zero:020}", token[0]);
        let call = format!("CALL lockattr_v2_release_each('{item}')");
        let held: Vec<String> = self.query("lockattr", &call).await;
        assert_eq!(held, ["1"], "it was not held");
    }
}
