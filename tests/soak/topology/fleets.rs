//! What several Redis have in common, however they belong together.

use lockattr_tests::{Engine, RedisServer, RedisServerBuilder, Servers};

use crate::weather::Harm;

/// What outlives a kill -9 is what was handed to the system: no fsync is needed for that.
pub(super) fn durable() -> RedisServerBuilder {
    RedisServer::builder().appendonly().line("appendfsync no")
}

pub(super) async fn left_on(servers: &impl Servers) -> Vec<String> {
    let mut left = Vec::new();
    for server in servers.servers() {
        left.extend(server.left().await);
    }
    left
}

pub(super) async fn forget(server: &RedisServer, kind: Harm) {
    let cli = server.cli().await;
    match kind {
        Harm::ScriptsFlushed => cli.script_flush().await,
        // Not the servers' own connections among each other.
        _ => {
            for kind in ["normal", "pubsub"] {
                cli.query::<u64>(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]).await;
            }
        }
    }
}

/// What such a fleet has of an engine, beside how it is started.
macro_rules! no_engine_of_its_own {
    ($what:literal) => {
        /// There is no proxy before servers that others name.
        fn addrs(&self) -> Vec<String> {
            Vec::new()
        }

        fn url_at(&self, _: &[String]) -> String {
            self.0.url()
        }

        async fn left(&self) -> Vec<String> {
            $crate::topology::fleets::left_on(&self.0).await
        }

        async fn restart(&self) {
            unreachable!(concat!($what, " is not in its list"));
        }

        fn freeze(&self) {
            unreachable!(concat!($what, " is not in its list"));
        }

        fn thaw(&self) {
            unreachable!(concat!($what, " is not in its list"));
        }
    };
}

pub(super) use no_engine_of_its_own;
