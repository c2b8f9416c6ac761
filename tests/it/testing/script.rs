//! Locks that are held by another process, expired or stolen.

use std::time::Duration;

use lockattr::testing::TestLocks;
use lockattr::{Error, LockManager, LockOptions, LostReason, Mode, distributed_lock};
use tokio::join;
use tokio::time::{Instant, sleep};

use super::{SECOND, deduct, outcomes};

#[tokio::test(start_paused = true)]
async fn a_lock_held_by_another_client_is_contended_and_its_holder_named() {
    let locks = TestLocks::new();
    let other = locks.hold("product:42");
    let refused = locks.scope(deduct(42)).await.unwrap_err();
    assert!(
        refused.to_string().starts_with(
            "`product:42` is held by another on elsewhere (process 4711), its lease ends in"
        ),
        "{refused}"
    );
    let Error::Contended { waited, .. } = refused else { panic!("{refused:?}") };
    assert!((3 * SECOND..4 * SECOND).contains(&waited), "{waited:?}");
    assert!(locks.scope(deduct(43)).await.is_ok(), "another key is free");

    other.release();
    assert!(locks.scope(deduct(42)).await.is_ok());
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_released_by_another_client_goes_to_the_head_of_the_queue() {
    let locks = TestLocks::new();
    let other = locks.hold("product:42");
    let (first, second) = (locks.another_process(), locks.another_process());
    let line = async {
        locks.until_waiting("product:42", 1).await;
        let behind = second.acquire("product:42", LockOptions::new());
        let let_go = async {
            locks.until_waiting("product:42", 2).await;
            drop(other);
        };
        join!(behind, let_go).0
    };
    let began = Instant::now();
    let work = async {
        let guard = first.acquire("product:42", LockOptions::new()).await?;
        assert_eq!(locks.holder("product:42").unwrap().service.as_deref(), Some("process-2"));
        sleep(2 * SECOND).await;
        guard.release().await
    };
    let (first, second) = join!(work, line);
    assert!(first.is_ok());
    assert_eq!(began.elapsed(), 2 * SECOND, "no caller waited for a timer");
    assert_eq!(locks.holder("product:42").unwrap().service.as_deref(), Some("process-3"));
    drop(second);
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_another_client_releases_later_is_acquired_then() {
    let locks = TestLocks::new();
    locks.hold("product:42").release_after(2 * SECOND);
    let began = Instant::now();
    assert!(locks.scope(deduct(42)).await.is_ok());
    assert_eq!(began.elapsed(), 62 * SECOND);

    locks.hold("product:42").release_after(4 * SECOND);
    assert!(matches!(locks.scope(deduct(42)).await, Err(Error::Contended { .. })));
    locks.until_free("product:42").await;
    locks.assert_nothing_left().await;
}

#[distributed_lock(key = "slots", permits = 2, wait = "0s")]
async fn take_a_slot() -> Result<(), Error> {
    sleep(SECOND).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn another_client_can_have_a_shared_lock_or_a_permit() {
    let locks = TestLocks::new();
    let two = LockOptions::new().permits(2);
    let one = locks.hold_with("slots", &two);
    assert!(locks.scope(take_a_slot()).await.is_ok());
    let another = locks.hold_with("slots", &two);
    assert!(matches!(locks.scope(take_a_slot()).await, Err(Error::Contended { .. })));
    drop((one, another));

    let reads = LockOptions::new().mode(Mode::Shared);
    let reader = locks.hold_with("report", &reads);
    assert!(locks.manager().try_acquire("report", reads).await.unwrap().is_some());
    drop(reader);
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_whose_lock_is_stolen_is_cancelled_at_its_next_renewal_or_at_once() {
    for (noticed, after) in [(false, 5 * SECOND + SECOND / 3), (true, 2 * SECOND)] {
        let locks = TestLocks::new();
        let theft = async {
            locks.until_held("product:42").await;
            sleep(2 * SECOND).await;
            let thief = locks.steal("product:42");
            if noticed { thief.noticed() } else { thief }
        };
        let began = Instant::now();
        let work = async { (locks.scope(deduct(42)).await, began.elapsed()) };
        let ((lost, told), thief) = join!(work, theft);
        let Err(Error::Lost { key, reason: LostReason::Taken }) = lost else { panic!("{lost:?}") };
        assert_eq!(key, "product:42");
        assert!(told <= after, "{told:?}");
        assert!(noticed || told > 2 * SECOND, "{told:?}: at its next renewal");
        assert!(thief.is_held(), "the loser's release left it alone");
        assert_eq!(locks.holder("product:42").unwrap().service.as_deref(), Some("another"));
        drop(thief);
        locks.assert_nothing_left().await;
        assert_eq!(outcomes(&locks), ["lost: the store no longer has this process as its holder"]);
    }
}

#[distributed_lock(key = "product:<id>", on_lost = error)]
async fn finishes(id: u64) -> Result<u64, Error> {
    sleep(60 * SECOND).await;
    Ok(id)
}

#[distributed_lock(key = "product:<id>", on_lost = ignore)]
async fn carries_on(id: u64) -> Result<u64, Error> {
    sleep(60 * SECOND).await;
    Ok(id)
}

#[tokio::test(start_paused = true)]
async fn on_lost_decides_the_outcome_of_a_loss() {
    let locks = TestLocks::new();
    let theft = || async {
        locks.until_held("product:42").await;
        locks.steal("product:42").noticed()
    };
    let began = Instant::now();
    let (lost, thief) = join!(locks.scope(finishes(42)), theft());
    assert!(matches!(lost, Err(Error::Lost { .. })));
    assert_eq!(began.elapsed(), 60 * SECOND, "it was let finish");
    drop(thief);
    let (ignored, thief) = join!(locks.scope(carries_on(42)), theft());
    assert_eq!(ignored.unwrap(), 42);
    drop(thief);
    locks.assert_nothing_left().await;
}

/// The fencing token distinguishes the holder that does not know of its loss from the one that has
/// the lock.
#[tokio::test(start_paused = true)]
async fn until_the_loss_is_detected_both_believe_to_hold_and_the_later_token_is_greater() {
    let locks = TestLocks::new();
    let paused = locks.manager().acquire("stock", LockOptions::new()).await.unwrap();
    let thief = locks.steal("stock");
    assert!(paused.ensure_held().is_ok(), "the holder does not know");
    thief.release();
    let next = locks.another_process().acquire("stock", LockOptions::new()).await.unwrap();
    assert!(next.ensure_held().is_ok() && paused.ensure_held().is_ok());
    assert!(next.fencing_token() > paused.fencing_token());
    let stale = paused.release().await;
    assert!(matches!(stale, Err(Error::Lost { reason: LostReason::Taken, .. })));
    assert!(next.ensure_held().is_ok(), "and its release frees no lock");
    next.release().await.unwrap();
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_goes_to_the_next_in_the_queue_and_its_holder_knows() {
    let locks = TestLocks::new();
    let node = locks.another_process();
    let (began, long_wait) = (Instant::now(), LockOptions::new().wait(30 * SECOND));
    let next = async {
        locks.until_held("product:42").await;
        let next = node.acquire("product:42", long_wait);
        let expiry = async {
            locks.until_waiting("product:42", 1).await;
            locks.expire("product:42");
        };
        join!(next, expiry).0.unwrap()
    };
    let (lost, next) = join!(locks.scope(deduct(42)), next);
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Expired, .. })), "{lost:?}");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(locks.holder("product:42").unwrap().service.as_deref(), Some("process-2"));
    next.release().await.unwrap();
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_of_another_client_goes_to_the_next_at_once() {
    let locks = TestLocks::new();
    let other = locks.hold("stock");
    let began = Instant::now();
    let expiry = async {
        locks.until_waiting("stock", 1).await;
        locks.expire("stock");
        assert!(!other.is_held());
    };
    let (next, ()) = join!(locks.manager().acquire("stock", LockOptions::new()), expiry);
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(other);
    assert!(locks.holder("stock").is_some(), "the holder does not release what it lost");
    next.unwrap().release().await.unwrap();
    locks.assert_nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ended_in_the_queue_is_passed_over() {
    let locks = TestLocks::new();
    let other = locks.hold("product:42");
    let node = locks.another_process();
    {
        let waits = node.acquire("product:42", LockOptions::new());
        tokio::pin!(waits);
        tokio::select! {
            biased;
            _ = &mut waits => panic!("it is held"),
            () = locks.until_waiting("product:42", 1) => {}
        }
        locks.cut();
    }
    // Its process could not release its claim.
    drop(node);
    other.release();
    locks.assert_free("product:42");
    locks.mend();
    assert!(locks.scope(deduct(42)).await.is_ok());
    locks.assert_nothing_left().await;
}

#[distributed_lock(key = "invoice:<id>", manager = "billing")]
async fn invoice(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[tokio::test(start_paused = true)]
async fn a_scope_replaces_managers_that_are_requested_by_name() {
    let locks = TestLocks::new();
    let _other = locks.hold("invoice:7");
    assert!(matches!(locks.scope(invoice(7)).await, Err(Error::Contended { .. })));
    // As always in a manager's own scope.
    let named = locks.manager().scope(invoice(7)).await;
    assert!(matches!(named, Err(Error::NoManagerNamed { .. })), "{named:?}");
}

/// Red without: `settings` given to the managers.
#[tokio::test(start_paused = true)]
async fn the_settings_are_the_ones_that_the_test_gives() {
    let settings = LockManager::builder().wait(7 * SECOND).prefix("shop:");
    let locks = TestLocks::with(settings).unwrap();
    let _other = locks.hold("stock");
    for manager in [locks.manager().clone(), locks.another_process()] {
        let began = Instant::now();
        assert!(manager.acquire("stock", LockOptions::new()).await.is_err());
        assert_eq!(began.elapsed(), 7 * SECOND);
    }
    let url = LockManager::builder().url("memory://");
    assert!(matches!(TestLocks::with(url), Err(Error::InvalidOptions(_))));
}

/// Red without: the panics in `hold_with`, `steal` and `expire`.
#[tokio::test(start_paused = true)]
async fn an_invalid_script_panics_with_a_message() {
    let locks = TestLocks::new();
    let said = |act: &dyn Fn()| {
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).unwrap_err();
        payload.downcast_ref::<String>().expect("a sentence").clone()
    };
    let other = locks.hold("stock");
    let twice = said(&|| drop(locks.hold("stock")));
    assert!(
        twice.starts_with("`stock` cannot be held as another client: it is held by another on")
    );
    other.release();
    assert!(
        said(&|| drop(locks.steal("stock"))).starts_with("`stock` cannot be stolen: no caller")
    );
    assert!(
        said(&|| locks.expire("stock")).starts_with("`stock` cannot expire: no caller holds it")
    );
    assert!(said(&|| drop(locks.hold(""))).starts_with("the key is empty"));
    locks.assert_nothing_left().await;
}
