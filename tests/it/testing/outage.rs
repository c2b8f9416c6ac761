//! A store that is cut off, hangs, loses replies, or is slow.

use lockattr::testing::{Outcome, TestLocks};
use lockattr::{Error, LockOptions, LostReason, distributed_lock};
use tokio::join;
use tokio::time::{Instant, sleep};

use super::{SECOND, deduct, outcomes};
use lockattr_tests::force_release;

#[distributed_lock(key = "product:<id>", on_unavailable = run_unlocked, wait = "1s")]
async fn advise(id: u64) -> Result<Option<u64>, Error> {
    Ok(lockattr::held(&format!("product:{id}")).map(|lease| lease.fencing_token().get()))
}

/// Red without: `Fault::Cut` in `send`.
#[tokio::test(start_paused = true)]
async fn with_the_store_cut_off_calls_are_refused_or_run_unlocked() {
    let locks = TestLocks::new();
    locks.cut();
    let refused = locks.scope(deduct(42)).await.unwrap_err();
    assert!(matches!(&refused, Error::Store { key, .. } if key == "product:42"), "{refused:?}");
    assert!(refused.to_string().contains("the test has cut the network"), "{refused}");
    assert_eq!(locks.scope(advise(42)).await.unwrap(), None, "it ran without");

    locks.mend();
    assert!(locks.scope(advise(42)).await.unwrap().is_some(), "it ran under the lock");
    assert_eq!(outcomes(&locks), ["store unavailable", "store unavailable", "released"]);
    locks.assert_nothing_left().await;
}

/// Red without: sending the renewals through the network.
#[tokio::test(start_paused = true)]
async fn a_holder_whose_store_is_cut_off_learns_by_its_own_deadline() {
    let locks = TestLocks::new();
    let began = Instant::now();
    let outage = async {
        sleep(SECOND).await;
        locks.cut();
    };
    let (lost, ()) = join!(locks.scope(deduct(42)), outage);
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Expired, .. })), "{lost:?}");
    assert!((9 * SECOND..10 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
    locks.until_free("product:42").await;
}

/// Red without: `mend` letting requests through again.
#[tokio::test(start_paused = true)]
async fn an_outage_that_is_over_before_the_deadline_costs_nothing() {
    let locks = TestLocks::new();
    for outage in [TestLocks::cut, TestLocks::hang, TestLocks::lose_answers] {
        let passing = async {
            locks.until_held("product:42").await;
            outage(&locks);
            sleep(8 * SECOND).await;
            locks.mend();
        };
        let (done, ()) = join!(locks.scope(deduct(42)), passing);
        assert_eq!(done.unwrap(), 42);
    }
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_fails_after_a_second_and_had_no_effect() {
    let locks = TestLocks::new();
    locks.hang();
    let began = Instant::now();
    let once = locks.manager().acquire("stock", LockOptions::new().retry(0)).await;
    assert!(matches!(once, Err(Error::Store { .. })), "{once:?}");
    assert_eq!(began.elapsed(), SECOND);
    assert_eq!(locks.holder("stock"), None);

    // A request that hangs for less time continues.
    let mended = async {
        sleep(SECOND / 2).await;
        locks.mend();
    };
    let (guard, ()) = join!(locks.manager().acquire("stock", LockOptions::new()), mended);
    assert_eq!(began.elapsed(), SECOND + SECOND / 2);
    guard.unwrap().release().await.unwrap();
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_may_leave_a_lock_that_is_released_later() {
    let locks = TestLocks::new();
    locks.lose_answers();
    let once = locks.manager().acquire("stock", LockOptions::new().retry(0)).await;
    assert!(matches!(once, Err(Error::Store { .. })), "{once:?}");
    assert!(locks.holder("stock").is_some(), "it has taken effect");
    locks.mend();
    locks.until_free("stock").await;
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_freed_during_an_outage_is_acquired_as_soon_as_the_outage_ends() {
    let locks = TestLocks::new();
    let other = locks.hold("stock");
    let began = Instant::now();
    let outage = async {
        locks.until_waiting("stock", 1).await;
        locks.cut();
        other.release();
        sleep(4 * SECOND).await;
        assert_eq!(locks.acquisitions()[0].outcome, Outcome::Waiting, "not notified");
        locks.mend();
    };
    let (guard, ()) = join!(locks.manager().acquire("stock", LockOptions::new()), outage);
    assert_eq!(began.elapsed(), 4 * SECOND);
    guard.unwrap().release().await.unwrap();
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn the_given_number_of_requests_fail_and_the_next_succeeds() {
    let locks = TestLocks::new();
    let attempts = |retries| LockOptions::new().retry(retries);
    locks.fail_next(3);
    let three = locks.manager().acquire("stock", attempts(2)).await;
    assert!(matches!(three, Err(Error::Store { .. })), "{three:?}");
    assert!(locks.manager().acquire("stock", attempts(0)).await.is_ok());

    locks.fail_next(3);
    assert!(locks.manager().acquire("other", attempts(3)).await.is_ok());
    locks.assert_nothing_left().await;
}

/// Red without: `sleep(delay)` in `send`.
#[tokio::test(start_paused = true)]
async fn a_slow_store_takes_its_time_and_its_requests_are_counted() {
    let locks = TestLocks::new();
    locks.slow(SECOND / 4);
    let began = Instant::now();
    let guard = locks.manager().acquire("stock", LockOptions::new()).await.unwrap();
    assert_eq!(began.elapsed(), SECOND / 4);
    let nested = guard.scope(locks.manager().acquire("stock", LockOptions::new())).await.unwrap();
    assert_eq!(locks.requests(), 1, "a reentrant call sends no request");
    nested.release().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!((began.elapsed(), locks.requests()), (SECOND / 2, 2));
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn requests_of_an_operator_go_through_the_network_too() {
    let locks = TestLocks::new();
    let manager = locks.manager();
    let _other = locks.hold("product:42");
    let held = manager.held_locks().await.unwrap();
    assert!(held.iter().map(|held| held.key.as_str()).eq(["product:42"]), "{held:?}");
    locks.cut();
    assert!(matches!(manager.held_locks().await, Err(Error::Store { .. })));
    assert!(matches!(force_release(manager, "product:42").await, Err(Error::Store { .. })));
    locks.mend();
    assert!(force_release(manager, "product:42").await.unwrap());
    assert_eq!(manager.held_locks().await.unwrap(), []);
    locks.assert_nothing_left().await;
}
