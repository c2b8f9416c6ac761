//! The counts of acquisitions by outcome.

use std::sync::Arc;

use lockattr::store::MemoryStore;
use lockattr::{Error, LockManager, LockOptions, OnLost, distributed_lock};
use metrics::Unit;
use tokio::time::{sleep, timeout};

use super::metrics::{Metrics, of, recorded};
use super::{MINUTE, SECOND, memory, sell};
use crate::support::broken_manager;

/// Asserts that nothing is under way: no waiters and no holds.
pub(super) fn assert_back_to_zero(metrics: &Metrics) {
    assert_eq!((metrics.now("lockattr.waiting"), metrics.now("lockattr.held")), (0.0, 0.0));
}

/// Red without: the template as the label; `self.since = Instant::now()` in `Observed::acquired`.
#[test]
fn acquisitions_and_holds_are_counted_by_template_whatever_the_key() {
    recorded(async |metrics| {
        let manager = memory();
        let both =
            async { tokio::join!(sell(&manager, 17, 3 * SECOND), sell(&manager, 18, SECOND)) };
        let look = async {
            sleep(SECOND / 2).await;
            (metrics.now("lockattr.waiting"), metrics.now("lockattr.held"))
        };
        let (sold, during) = tokio::join!(both, look);
        assert_eq!(during, (0.0, 2.0));
        sold.0.and(sold.1).unwrap();
        let acquired = "product:<id>,acquired";
        assert_eq!(metrics.counts("lockattr.acquisitions"), of(&[(acquired, 2)]));
        assert_eq!(metrics.times("lockattr.wait.duration"), of(&[(acquired, vec![0.0, 0.0])]));
        let released = "product:<id>,released";
        assert_eq!(metrics.times("lockattr.hold.duration"), of(&[(released, vec![1.0, 3.0])]));
        assert_eq!(metrics.counts("lockattr.releases"), of(&[("released", 2)]));
        assert_back_to_zero(metrics);
        let all = metrics.all();
        assert!(!all.contains("product:17") && !all.contains("product:18"), "{all}");
    });
}

/// Red without: `waits(…, -1.0)` in `Observed::waited`.
#[test]
fn a_waiter_that_times_out_is_counted_as_contended_after_its_wait() {
    recorded(async |metrics| {
        let manager = memory();
        let held = manager.acquire("product:1", LockOptions::new()).await.unwrap();
        let look = async {
            sleep(SECOND / 2).await;
            metrics.now("lockattr.waiting")
        };
        let (refused, waiting) = tokio::join!(sell(&manager, 1, SECOND), look);
        assert!(matches!(refused, Err(Error::Contended { .. })), "{refused:?}");
        assert_eq!(waiting, 1.0);
        held.release().await.unwrap();
        let contended = "product:<id>,contended";
        let counts = of(&[(contended, 1), ("unnamed,acquired", 1)]);
        assert_eq!(metrics.counts("lockattr.acquisitions"), counts);
        let times = of(&[(contended, vec![1.0]), ("unnamed,acquired", vec![0.0])]);
        assert_eq!(metrics.times("lockattr.wait.duration"), times);
        assert_eq!(metrics.times("lockattr.hold.duration").len(), 1, "that of the other");
        assert_back_to_zero(metrics);
    });
}

/// Red without: `release.held` where releases are counted. A process that gives up waiting leaves
/// the store's queue by a release, which finds no lock. It did not lose a lock.
#[test]
fn leaving_the_queue_of_the_store_is_not_counted_as_a_release() {
    recorded(async |metrics| {
        let store = Arc::new(MemoryStore::new());
        let process = || LockManager::builder().store(store.clone()).build().unwrap();
        let (one, other) = (process(), process());
        let held = one.acquire("product:1", LockOptions::new()).await.unwrap();
        let refused = sell(&other, 1, SECOND).await;
        assert!(matches!(refused, Err(Error::Contended { .. })), "{refused:?}");
        other.shutdown().await;
        held.release().await.unwrap();
        assert_eq!(metrics.counts("lockattr.releases"), of(&[("released", 1)]));
        assert_back_to_zero(metrics);
    });
}

/// Red without: the row of `Error::Store` in `named_error`. An outage is not contention.
#[test]
fn an_outage_is_counted_as_unavailable() {
    recorded(async |metrics| {
        let refused = sell(&broken_manager(), 1, SECOND).await;
        assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
        let counts = of(&[("product:<id>,unavailable", 1)]);
        assert_eq!(metrics.counts("lockattr.acquisitions"), counts);
        assert_back_to_zero(metrics);
    });
}

/// Red without: `impl Drop for AcquireObservation`.
#[test]
fn a_waiter_that_gives_up_is_counted_as_cancelled() {
    recorded(async |metrics| {
        let manager = memory();
        let held = manager.acquire("product:1", LockOptions::new()).await.unwrap();
        assert!(timeout(SECOND / 4, sell(&manager, 1, SECOND)).await.is_err());
        held.release().await.unwrap();
        let counts = of(&[("product:<id>,cancelled", 1), ("unnamed,acquired", 1)]);
        assert_eq!(metrics.counts("lockattr.acquisitions"), counts);
        let waited = metrics.times("lockattr.wait.duration");
        assert_eq!(waited[0], ("product:<id>,cancelled".to_owned(), vec![0.25]));
        assert_back_to_zero(metrics);
    });
}

#[test]
fn an_acquire_after_the_shutdown_is_counted_as_shut_down() {
    recorded(async |metrics| {
        let manager = memory();
        manager.shutdown().await;
        let refused = sell(&manager, 1, SECOND).await;
        assert!(matches!(refused, Err(Error::ShutDown { .. })), "{refused:?}");
        let counts = of(&[("product:<id>,shut_down", 1)]);
        assert_eq!(metrics.counts("lockattr.acquisitions"), counts);
        assert_back_to_zero(metrics);
    });
}

/// Red without: either `observe::reentered` in `enter_again`.
#[test]
fn a_nested_call_is_counted_and_is_no_second_hold() {
    recorded(async |metrics| {
        let manager = memory();
        let outer = LockOptions::new().template("product:<outer>");
        let held = async |_: &_| {
            let nested =
                async { tokio::join!(sell(&manager, 1, SECOND), sell(&manager, 1, SECOND / 2)) };
            let look = async {
                sleep(SECOND / 2).await;
                metrics.now("lockattr.held")
            };
            tokio::join!(nested, look)
        };
        let ((one, other), during) = manager.with_lock("product:1", outer, held).await.unwrap();
        one.and(other).unwrap();
        assert_eq!(during, 1.0);
        let counts = of(&[("product:<id>,reentered", 2), ("product:<outer>,acquired", 1)]);
        assert_eq!(metrics.counts("lockattr.acquisitions"), counts);
        let held = of(&[("product:<outer>,released", vec![1.5])]);
        assert_eq!(metrics.times("lockattr.hold.duration"), held);
        assert_eq!(
            metrics.times("lockattr.wait.duration").len(),
            1,
            "a nested call sends no request"
        );
        assert_back_to_zero(metrics);
    });
}

/// Nested calls that enter at once or after a wait, and each way to refuse one. Red without: either
/// line about `nested` in `AcquireObservation`.
#[test]
fn a_nested_call_that_is_refused_is_counted_and_is_no_wait_for_the_store() {
    #[distributed_lock(key = "product:<id>", manager = manager, reentrant = false)]
    async fn once(manager: &LockManager, id: u64) -> Result<(), Error> {
        Ok(())
    }
    recorded(async |metrics| {
        let manager = memory();
        let outer = LockOptions::new().template("product:<outer>").ttl(5 * SECOND).renew(false);
        let held = async |_: &_| {
            let (sold, refused) =
                tokio::join!(sell(&manager, 1, 2 * SECOND), sell(&manager, 1, SECOND));
            sold.unwrap();
            assert!(matches!(refused, Err(Error::Contended { .. })), "{refused:?}");
            let gives_up = timeout(SECOND / 4, sell(&manager, 1, SECOND));
            let (sold, gave_up) = tokio::join!(sell(&manager, 1, SECOND), gives_up);
            sold.unwrap();
            assert!(gave_up.is_err());
            let refused = once(&manager, 1).await;
            assert!(matches!(refused, Err(Error::Reentered { .. })), "{refused:?}");
            sleep(3 * SECOND).await;
            let refused = sell(&manager, 1, SECOND).await;
            assert!(matches!(refused, Err(Error::Lost { .. })), "{refused:?}");
        };
        let lost = manager.with_lock("product:1", outer.on_lost(OnLost::Error), held).await;
        assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
        let counts = of(&[
            ("product:<id>,cancelled", 1),
            ("product:<id>,contended", 1),
            ("product:<id>,lost", 1),
            ("product:<id>,not_reentrant", 1),
            ("product:<id>,reentered", 2),
            ("product:<outer>,acquired", 1),
        ]);
        assert_eq!(metrics.counts("lockattr.acquisitions"), counts);
        let waited = of(&[("product:<outer>,acquired", vec![0.0])]);
        assert_eq!(metrics.times("lockattr.wait.duration"), waited);
        assert_back_to_zero(metrics);
    });
}

#[test]
fn several_keys_are_one_acquisition_under_both_templates() {
    #[distributed_lock(keys = ["account:<from>", "account:<to>"], manager = manager)]
    async fn transfer(manager: &LockManager, from: u64, to: u64) -> Result<(), Error> {
        sleep(SECOND).await;
        Ok(())
    }
    recorded(async |metrics| {
        transfer(&memory(), 3, 7).await.unwrap();
        let counts = of(&[("account:<from>, account:<to>,acquired", 1)]);
        assert_eq!(metrics.counts("lockattr.acquisitions"), counts);
        assert_back_to_zero(metrics);
    });
}

/// The list in docs/observability.md. Red without: any row of `described`.
#[test]
fn each_metric_is_described_with_its_unit() {
    recorded(async |metrics| {
        let manager = memory();
        sell(&manager, 1, MINUTE).await.unwrap();
        let expected = [
            ("lockattr.acquisitions", Unit::Count),
            ("lockattr.held", Unit::Count),
            ("lockattr.hold.duration", Unit::Seconds),
            ("lockattr.releases", Unit::Count),
            ("lockattr.renewals", Unit::Count),
            ("lockattr.wait.duration", Unit::Seconds),
            ("lockattr.waiting", Unit::Count),
        ];
        let expected = expected.map(|(name, unit)| (name.to_owned(), unit));
        assert_eq!(metrics.units(), expected.into());
    });
}
