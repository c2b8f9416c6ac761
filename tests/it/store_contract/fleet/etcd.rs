//! One etcd cluster of three members for all tests. The keys of each test have a prefix of their
//! own.

use std::sync::atomic::{AtomicUsize, Ordering};

use lockattr::store::EtcdStore;
use lockattr_tests::{Engine, Etcd, eventually};

use super::super::asked::{PREFIX, set_key_prefix};
use super::super::{AnyStore, TTL};
use super::Fleet;

/// The store as each process sees it. Its session is long enough for the longest lease of the
/// suite.
pub(in super::super) struct OnEtcd {
    etcd: &'static Etcd,
    apart: String,
}

impl Fleet for OnEtcd {
    async fn start() -> Self {
        static TESTS: AtomicUsize = AtomicUsize::new(0);
        let etcd = Etcd::shared().await;
        let apart = format!("test {}:", TESTS.fetch_add(1, Ordering::Relaxed));
        set_key_prefix(&apart);
        Self { etcd, apart }
    }

    fn node(&self) -> AnyStore {
        // Three members and many other tests share this machine.
        let url =
            self.etcd.url_with("session_timeout=200s&connect_timeout=10s&response_timeout=10s");
        AnyStore::new(EtcdStore::open(&url).expect("a good URL"))
    }

    /// etcd needs no notification: the store skips the claims of a session that has ended.
    async fn wait_until_gone(&self, _inbox: u64) {}

    /// A dropped store revokes its session, and with it all entries of that session.
    async fn saw_nothing_wrong(&self) {
        let nothing = async || self.etcd.keys(&[PREFIX, &self.apart].concat()).await.is_empty();
        eventually(TTL, "all entries go with their store", nothing).await;
    }
}
