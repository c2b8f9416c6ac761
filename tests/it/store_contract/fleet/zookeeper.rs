//! One ZooKeeper ensemble for all tests. Each test has a node of its own.

use std::sync::OnceLock;

use lockattr::store::ZookeeperStore;
use lockattr_tests::{Engine, ZooKeeper, eventually, for_store};

use super::Fleet;
use crate::store_contract::AnyStore;

static ADDRS: OnceLock<Vec<String>> = OnceLock::new();

/// The node that belongs to this test alone.
pub(in crate::store_contract) struct OnZooKeeper(String);

impl Fleet for OnZooKeeper {
    async fn start() -> Self {
        let ensemble = ZooKeeper::shared().await;
        ADDRS.get_or_init(|| ensemble.addrs());
        Self(ensemble.chroot_apart())
    }

    fn node(&self) -> AnyStore {
        // The ensemble's JVMs and many other tests share this machine.
        let addrs = ADDRS.get().expect("it was started").join(",");
        let url = format!("zookeeper://{addrs}{}?response_timeout=10s&connect_timeout=10s", self.0);
        AnyStore::new(ZookeeperStore::open(&for_store(&url)).expect("a good URL"))
    }

    // A session is closed with its store, and its entries are gone before the next waiters are
    // notified, so there is nothing to wait for.

    /// By now the store is dropped and its session is closed.
    async fn finish(&self) {
        let ensemble = ZooKeeper::shared().await;
        let nothing = async || ensemble.left_below(&self.0).await.is_empty();
        eventually("neither entries nor their parents are left", nothing).await;
    }
}
