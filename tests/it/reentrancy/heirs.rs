//! Tasks that outlive the nested call that spawned them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, LostReason};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{SECOND, with_manager};

/// Checks that one caller at a time is inside the lock.
#[derive(Clone, Default)]
struct Desk(Arc<AtomicUsize>);

impl Desk {
    async fn works(&self, manager: &LockManager) -> Result<u32, Error> {
        let work = async |lease: &Lease| {
            assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "two inside at once");
            sleep(SECOND).await;
            self.0.fetch_sub(1, Ordering::SeqCst);
            lease.ensure_held().map(|()| lease.depth())
        };
        manager.with_lock("stock", LockOptions::new(), work).await?
    }

    /// A nested call that returns before the task that it spawns, which works after `later`.
    async fn spawns(
        &self,
        manager: &LockManager,
        later: Duration,
    ) -> JoinHandle<Result<u32, Error>> {
        let (desk, again, mut spawned) = (self.clone(), manager.clone(), None);
        let heir = async move {
            sleep(later).await;
            desk.works(&again).await
        };
        let nested = async |_: &Lease| {
            spawned = Some(tokio::spawn(lockattr::inherit(heir)));
            sleep(SECOND / 2).await;
        };
        manager.with_lock("stock", LockOptions::new(), nested).await.unwrap();
        spawned.expect("the nested call ran")
    }
}

/// Returns the depths inside one hold: of the heir, which works `later` than it is spawned, and of
/// the call after its own.
async fn depths_of_heir_and_next(later: Duration) -> (u32, u32) {
    with_manager(|manager| async move {
        let desk = Desk::default();
        let body = async |_: &Lease| {
            let heir = desk.spawns(&manager, later).await;
            let next = desk.works(&manager).await;
            (heir.await.unwrap().unwrap(), next.unwrap())
        };
        manager.with_lock("stock", LockOptions::new(), body).await.unwrap()
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn the_heir_of_a_call_that_returned_takes_turns_with_the_next() {
    // The nested hold is over, so the heir enters the outer one.
    assert_eq!(depths_of_heir_and_next(SECOND).await, (2, 2));
}

#[tokio::test(start_paused = true)]
async fn an_heir_inside_keeps_the_next_out_after_its_call_returned() {
    assert_eq!(depths_of_heir_and_next(SECOND / 4).await, (3, 2));
}

/// Red without: `is_over` in `Frame::ensure_held`, in `find`, or in `assert_held`.
#[tokio::test(start_paused = true)]
async fn leases_and_heirs_of_a_call_that_returned_hold_nothing() {
    with_manager(|manager| async move {
        let outer = manager.acquire("stock", LockOptions::new()).await.unwrap();
        let nested = outer.scope(manager.acquire("stock", LockOptions::new())).await.unwrap();
        let left = Lease::clone(&nested);
        let heir = nested.scope(async {
            sleep(SECOND).await;
            let is_held = lockattr::held("stock").is_some();
            (is_held, manager.acquire("stock", LockOptions::new()).await.map(drop))
        });
        nested.release().await.unwrap();
        let error = left.ensure_held().unwrap_err();
        assert!(matches!(error, Error::Lost { reason: LostReason::Released, .. }), "{error:?}");
        assert!(left.remaining().is_zero());
        outer.ensure_held().unwrap();
        let (is_held, entered) = heir.await;
        assert!(!is_held);
        let error = entered.unwrap_err();
        assert!(matches!(error, Error::Lost { reason: LostReason::Released, .. }), "{error:?}");
        outer.release().await.unwrap();
        assert_eq!(manager.held_locks().await.unwrap(), []);
    })
    .await;
}

/// Red without: `turn.ok_or_else` in `enter_again`.
#[tokio::test(start_paused = true)]
async fn a_waiter_inside_a_call_that_returns_gets_an_error() {
    with_manager(|manager| async move {
        let desk = Desk::default();
        let outer = manager.acquire("stock", LockOptions::new()).await.unwrap();
        let nested = outer.scope(manager.acquire("stock", LockOptions::new())).await.unwrap();
        let first = nested.scope(manager.acquire("stock", LockOptions::new())).await.unwrap();
        let second = nested.scope(desk.works(&manager));
        let ends = async {
            sleep(SECOND).await;
            nested.release().await.unwrap();
            sleep(SECOND).await;
            first.release().await.unwrap();
        };
        let (second, ()) = tokio::join!(second, ends);
        let error = second.unwrap_err();
        assert!(matches!(error, Error::Lost { reason: LostReason::Released, .. }), "{error:?}");
        assert_eq!(outer.scope(desk.works(&manager)).await.unwrap(), 2);
        outer.release().await.unwrap();
    })
    .await;
}
