//! One etcd of three members for all tests: the keys of each have a prefix of their own.

use std::sync::atomic::{AtomicUsize, Ordering};

use lockattr::store::EtcdStore;
use lockattr_tests::{Engine, Etcd, eventually};

use super::super::asked::{PREFIX, keep_apart_by};
use super::super::{AnyStore, TTL};
use super::Fleet;

/// The store as each of its nodes sees it: with a session, so long that the longest lease of the
/// suite fits.
pub(in super::super) struct OnEtcd {
    etcd: &'static Etcd,
    apart: String,
}

impl Fleet for OnEtcd {
    async fn start() -> Self {
        static TESTS: AtomicUsize = AtomicUsize::new(0);
        let etcd = Etcd::shared().await;
        let apart = format!("test {}:", TESTS.fetch_add(1, Ordering::Relaxed));
        keep_apart_by(&apart);
        Self { etcd, apart }
    }

    fn node(&self) -> AnyStore {
        // Three members and as many tests beside share a machine.
        let url =
            self.etcd.url_with("session_timeout=200s&connect_timeout=10s&response_timeout=10s");
        AnyStore::new(EtcdStore::open(&url).expect("a good URL"))
    }

    /// It need not be told: its claims have a place, and their store passes them over.
    async fn knows_it_is_gone(&self, _inbox: u64) {}

    /// A store that is gone takes its session back, and all that hangs on it.
    async fn saw_nothing_wrong(&self) {
        let nothing = async || self.etcd.keys(&[PREFIX, &self.apart].concat()).await.is_empty();
        eventually(TTL, "all entries go with their store", nothing).await;
    }
}
