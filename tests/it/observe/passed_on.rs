//! Locks that are handed off inside a process, or kept there: each hold is counted once.

use lockattr::LockManager;
use tokio::time::sleep;

use super::counted::assert_back_to_zero;
use super::metrics::{of, recorded};
use super::{SECOND, memory, sell};

#[test]
fn a_lock_handed_off_in_the_process_is_a_hold_for_each_and_one_release() {
    recorded(async |metrics| {
        let manager = memory();
        let third = SECOND / 4;
        let all = async {
            tokio::join!(
                sell(&manager, 1, third),
                sell(&manager, 1, third),
                sell(&manager, 1, third)
            )
        };
        let look = async {
            sleep(third / 2).await;
            (metrics.now("lockattr.waiting"), metrics.now("lockattr.held"))
        };
        let ((one, two, three), during) = tokio::join!(all, look);
        one.and(two).and(three).unwrap();
        assert_eq!(during, (2.0, 1.0));
        let acquired = of(&[("product:<id>,acquired", vec![0.0, 0.25, 0.5])]);
        assert_eq!(metrics.times("lockattr.wait.duration"), acquired);
        let released = of(&[("product:<id>,released", vec![0.25; 3])]);
        assert_eq!(metrics.times("lockattr.hold.duration"), released);
        assert_eq!(metrics.counts("lockattr.releases"), of(&[("released", 1)]));
        assert_back_to_zero(metrics);
    });
}

/// Red without: making the kept guard without a `HoldObservation`. No process holds that lock.
#[test]
fn a_cached_lock_is_not_counted_as_held() {
    recorded(async |metrics| {
        let builder = LockManager::builder().url("memory://").linger(SECOND * 5);
        let manager = builder.build().unwrap();
        for _ in 0..2 {
            sell(&manager, 1, SECOND).await.unwrap();
            assert_back_to_zero(metrics);
        }
        let acquired = of(&[("product:<id>,acquired", 2)]);
        assert_eq!(metrics.counts("lockattr.acquisitions"), acquired);
        assert_eq!(metrics.counts("lockattr.releases"), of(&[]), "cached");
        let released = of(&[("product:<id>,released", vec![1.0; 2])]);
        assert_eq!(metrics.times("lockattr.hold.duration"), released);
        manager.shutdown().await;
        assert_eq!(metrics.counts("lockattr.releases"), of(&[("released", 1)]));
        assert_back_to_zero(metrics);
    });
}
