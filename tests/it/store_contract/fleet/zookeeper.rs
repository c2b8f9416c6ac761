//! One ZooKeeper ensemble for all tests. Each test has a node of its own.

use lockattr::store::ZookeeperStore;
use lockattr_tests::{Engine, ZooKeeper, eventually, for_store, with_query};

use super::Fleet;
use crate::store_contract::AnyStore;

pub(in crate::store_contract) struct OnZooKeeper {
    ensemble: &'static ZooKeeper,
    chroot: String,
}

impl Fleet for OnZooKeeper {
    async fn start() -> Self {
        let ensemble = ZooKeeper::shared().await;
        Self { ensemble, chroot: ensemble.chroot_apart() }
    }

    fn node(&self) -> AnyStore {
        let url = self.ensemble.url_below(&self.ensemble.addrs(), &self.chroot);
        let url = with_query(&url, "session_timeout=1h");
        AnyStore::new(ZookeeperStore::open(&for_store(&url)).expect("a good URL"))
    }

    // A session is closed with its store, and its entries are gone before the next waiters are
    // notified, so there is nothing to wait for.

    /// By now the store is dropped and its session is closed.
    async fn finish(&self) {
        let nothing = async || self.ensemble.left_below(&self.chroot).await.is_empty();
        eventually("neither entries nor their parents are left", nothing).await;
    }
}
