//! Calls for several keys, some of which the call chain already holds.

use std::time::Duration;

use lockattr::testing::TestLocks;
use lockattr::{Error, LockOptions, LostReason, distributed_lock};
use tokio::time::{Instant, sleep, timeout};

use super::SECOND;

fn long_wait() -> LockOptions {
    LockOptions::new().ttl(3 * SECOND).wait(60 * SECOND)
}

#[distributed_lock(keys = ["a", "b"], ttl = "3s", wait = "60s")]
async fn both(lasts: Duration) -> Result<(), Error> {
    sleep(lasts).await;
    Ok(())
}

#[distributed_lock(keys = ["a", "c"], ttl = "3s", wait = "60s", on_lost = error, lease = lease)]
async fn told() -> Result<Option<String>, Error> {
    lease.lost().await;
    let lost = lease.ensure_held().unwrap_err();
    assert!(lease.remaining().is_zero());
    assert!(lockattr::current().unwrap().ensure_held().is_err());
    Err(lost)
}

fn lost_key(outcome: Result<impl std::fmt::Debug, Error>) -> String {
    match outcome {
        Err(Error::Lost { key, .. }) => key,
        other => panic!("{other:?}"),
    }
}

/// Red without: `ensure_held` in `acquire_all_on`.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_lost_while_another_is_waited_for_keeps_the_body_from_starting() {
    let locks = TestLocks::new();
    let a = locks.manager().acquire("a", long_wait().renew(false)).await.unwrap();
    locks.hold("b").release_after(5 * SECOND);
    let refused = a.scope(locks.manager().acquire_all(["a", "b"], long_wait())).await;
    let Err(Error::Lost { key, reason: LostReason::Expired }) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(key, "a");
    drop(a);
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_has_lost_all_with_a_key_that_was_entered_again() {
    let locks = TestLocks::new();
    let a = locks.manager().acquire("a", long_wait()).await.unwrap();
    let both = locks.scope(a.scope(both(60 * SECOND)));
    let thief = async {
        locks.until_held("b").await;
        locks.steal("a")
    };
    let (cancelled, thief) = tokio::join!(both, thief);
    assert_eq!(lost_key(cancelled), "a");
    assert!(locks.holder("b").is_none(), "the other is released");
    thief.release();
    assert_eq!(lost_key(a.release().await), "a");
    locks.assert_nothing_left().await;
}

/// Red without: `Frame::join`, or checking the leases beside in `ensure_held` or `ended`.
#[tokio::test(start_paused = true)]
async fn a_lease_reports_the_loss_of_a_key_that_was_entered_again() {
    let locks = TestLocks::new();
    let a = locks.manager().acquire("a", long_wait()).await.unwrap();
    let thief = async {
        locks.until_held("c").await;
        locks.steal("a")
    };
    let (told, thief) = tokio::join!(locks.scope(a.scope(told())), thief);
    assert_eq!(lost_key(told), "a");
    thief.release();
    drop(a);
    locks.assert_nothing_left().await;
}

/// Two branches each want a key of both holds. With a different order in each, they would deadlock.
#[tokio::test(start_paused = true)]
async fn branches_enter_the_holds_around_them_in_one_order() {
    let locks = TestLocks::new();
    let manager = locks.manager();
    let outer = manager.acquire_all(["a", "d"], long_wait()).await.unwrap();
    let inner = outer.scope(manager.acquire_all(["b", "c"], long_wait())).await.unwrap();
    let takes = async |keys: [&str; 2]| {
        // Each branch waits for its first turn before it asks for the second.
        let guard = manager.acquire_all(keys, long_wait()).await.unwrap();
        sleep(SECOND).await;
        guard.release().await.unwrap();
    };
    let branches = outer.scope(async {
        let turn = manager.acquire("a", long_wait()).await.unwrap();
        let gives_way = async {
            sleep(SECOND).await;
            drop(turn);
        };
        let all = async { tokio::join!(takes(["a", "b"]), takes(["c", "d"]), gives_way) };
        inner.scope(all).await
    });
    timeout(30 * SECOND, branches).await.expect("they take turns");
    inner.release().await.unwrap();
    outer.release().await.unwrap();
    locks.assert_nothing_left().await;
}

/// Branches of the call's own body hold two of the keys, one after the other. The call waits for
/// both, and for a third key, within one wait budget.
#[tokio::test(start_paused = true)]
async fn a_call_for_several_keys_has_one_wait_budget() {
    let locks = TestLocks::new();
    let manager = locks.manager();
    let hold = LockOptions::new().ttl(60 * SECOND);
    let (a, b) = (
        manager.acquire("a", hold.clone()).await.unwrap(),
        manager.acquire("b", hold.clone()).await.unwrap(),
    );
    let inside = async {
        let first = manager.acquire("a", hold.clone()).await.unwrap();
        let second = manager.acquire("b", hold.clone()).await.unwrap();
        let lets_go = async {
            // The call waits for the outer hold first.
            sleep(3 * SECOND).await;
            drop(second);
            sleep(3 * SECOND).await;
            drop(first);
        };
        let began = Instant::now();
        let asks = async {
            let keys = ["a", "b", "c"];
            let refused = manager.acquire_all(keys, LockOptions::new().wait(5 * SECOND)).await;
            let Err(Error::Contended { waited, .. }) = &refused else { panic!("{refused:?}") };
            assert_eq!(began.elapsed(), 5 * SECOND);
            assert_eq!(*waited, 5 * SECOND);
        };
        tokio::join!(lets_go, asks);
    };
    // A scope's place in the chain is where it is created.
    b.scope(async { a.scope(inside).await }).await;
    drop((a, b));
    locks.assert_nothing_left().await;
}
