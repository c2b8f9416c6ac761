//! One etcd cluster of three members for all tests. The keys of each test have a prefix of their
//! own.

use lockattr::store::EtcdStore;
use lockattr_tests::{Engine, Etcd, eventually, for_store};

use super::{AnyStore, Fleet, next_prefix};

/// The store as each process sees it. Its session is long enough for the longest lease of the
/// suite.
pub(in super::super) struct OnEtcd {
    etcd: &'static Etcd,
    prefix: String,
}

impl Fleet for OnEtcd {
    async fn start() -> Self {
        Self { etcd: Etcd::shared().await, prefix: next_prefix() }
    }

    fn prefix(&self) -> String {
        self.prefix.clone()
    }

    fn node(&self) -> AnyStore {
        let url = self.etcd.url_with("session_timeout=2h");
        AnyStore::new(EtcdStore::open(&for_store(&url)).expect("a good URL"))
    }

    // The store skips the claims of a session that has ended, so there is nothing to wait for.

    /// A dropped store revokes its session, and with it all entries of that session.
    async fn finish(&self) {
        let nothing = async || self.etcd.keys(&self.prefix).await.is_empty();
        eventually("all entries go with their store", nothing).await;
    }
}
