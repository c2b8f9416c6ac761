//! The labels `manager` and `store`: which of a program's managers a series belongs to.

use std::sync::Arc;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, LockKey, MemoryStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError,
};
use lockattr::{Holder, LockManager, LockOptions};
use metrics::with_local_recorder;
use metrics_util::debugging::DebuggingRecorder;

use super::metrics::recorded;
use super::{SECOND, memory, sell};

fn pair(manager: &str, store: &str) -> (String, String) {
    (manager.to_owned(), store.to_owned())
}

/// A store of the program's own: every method that has no default.
#[derive(Debug, Default)]
struct TenantStore(MemoryStore);

impl Store for TenantStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.0.acquire(request).await
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.0.renew(renewals).await
    }

    async fn release(&self, all: &[ReleaseRequest]) -> Vec<Result<ReleaseOutcome, StoreError>> {
        self.0.release(all).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.0.holder(key).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.0.ping().await
    }
}

/// Red without: either label in `of_manager`, or `name` in `install_as`.
#[test]
fn two_managers_of_a_process_are_told_apart_by_name_and_store() {
    recorded(async |metrics| {
        let own = LockManager::builder().store(Arc::new(TenantStore::default())).build().unwrap();
        own.install_as("ledger").unwrap();
        sell(&own, 1, SECOND).await.unwrap();
        sell(&memory(), 1, SECOND).await.unwrap();
        let both = [pair("default", "memory"), pair("ledger", "tenant")];
        for metric in [
            "lockattr.acquisitions",
            "lockattr.wait.duration",
            "lockattr.hold.duration",
            "lockattr.held",
            "lockattr.waiting",
            "lockattr.releases",
        ] {
            assert_eq!(metrics.managers(metric), both, "{metric}");
        }
    });
}

/// Red without: `forget_handles` in `Telemetry::name`; the handles in `Observed`.
#[test]
fn a_manager_that_is_named_after_its_first_lock_ends_that_hold_under_the_old_label() {
    recorded(async |metrics| {
        let manager = memory();
        let held = manager.acquire("product:1", LockOptions::new()).await.unwrap();
        manager.install_as("named later").unwrap();
        held.release().await.unwrap();
        assert_eq!(metrics.managers("lockattr.hold.duration"), [pair("default", "memory")]);
        assert_eq!(metrics.now("lockattr.held"), 0.0);
        sell(&manager, 1, SECOND).await.unwrap();
        let both = [pair("default", "memory"), pair("named later", "memory")];
        assert_eq!(metrics.managers("lockattr.hold.duration"), both);
        manager.install_as("a second name").unwrap();
        sell(&manager, 1, SECOND).await.unwrap();
        assert_eq!(metrics.managers("lockattr.hold.duration"), both, "the first name stays");
    });
}

/// Red without: the comparison of the recorder in `Metrics::of`.
#[test]
fn a_recorder_that_is_installed_after_the_first_lock_still_counts_the_next() {
    let manager = memory();
    let late = DebuggingRecorder::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lock = || {
        runtime.block_on(async {
            manager
                .acquire("product:1", LockOptions::new())
                .await
                .unwrap()
                .release()
                .await
                .unwrap();
        });
    };
    lock();
    with_local_recorder(&late, lock);
    let names = late.snapshotter().snapshot().into_vec();
    let names: Vec<_> = names.iter().map(|(key, ..)| key.key().name().to_owned()).collect();
    for name in ["lockattr.acquisitions", "lockattr.hold.duration", "lockattr.releases"] {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
}

/// The kinds that docs/observability.md lists: the scheme of the URL.
#[test]
fn the_kind_of_each_store_is_the_scheme_of_its_url() {
    for (url, kind) in [
        ("memory://", "memory"),
        ("redis://u:secret@127.0.0.1/", "redis"),
        ("redis+cluster://127.0.0.1/", "redis"),
        ("redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/", "redlock"),
        ("postgres://u:secret@127.0.0.1/db", "postgres"),
        ("postgres://u:secret@127.0.0.1/db?lock=session", "postgres"),
        ("mysql://u:secret@127.0.0.1/db", "mysql"),
        ("zookeeper://127.0.0.1/", "zookeeper"),
        ("etcd://127.0.0.1/", "etcd"),
    ] {
        recorded(async |metrics| {
            let manager = LockManager::builder().url(url).build().unwrap();
            let once = LockOptions::new().wait(std::time::Duration::ZERO);
            manager.acquire("product:1", once).await.map(drop).ok();
            assert_eq!(metrics.managers("lockattr.waiting"), [pair("default", kind)], "{url}");
            let all = metrics.all();
            assert!(!all.contains("secret") && !all.contains("127.0.0.1"), "{all}");
        });
    }
    // A wrapped store of the program's own.
    let shared = Arc::new(TenantStore::default());
    assert_eq!(Store::kind(&*shared), "tenant");
}
