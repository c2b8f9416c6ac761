//! The call chain: which calls enter again, take turns, or wait outside.

mod heirs;
mod keys;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, LostReason, distributed_lock};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

/// Runs `test` in the scope of a manager on an in-memory store.
async fn with_manager<F: Future>(test: impl FnOnce(LockManager) -> F) -> F::Output {
    let manager = LockManager::builder().url("memory://").build().unwrap();
    manager.clone().scope(test(manager)).await
}

fn here() -> (u32, u64) {
    let lease = lockattr::current().expect("inside a hold");
    (lease.depth(), lease.fencing_token().get())
}

#[distributed_lock(key = "stock", wait = "100ms")]
async fn outer() -> Result<[(u32, u64); 3], Error> {
    let outer = here();
    let service: Box<dyn Middle> = Box::new(Warehouse);
    let (middle, inner) = service.middle().await?;
    assert_eq!(here(), outer, "back at the outer depth");
    Ok([outer, middle, inner])
}

trait Middle: Send + Sync {
    fn middle(&self) -> Pin<Box<dyn Future<Output = Pair> + Send + '_>>;
}

type Pair = Result<((u32, u64), (u32, u64)), Error>;

struct Warehouse;

impl Middle for Warehouse {
    #[distributed_lock(key = "stock", wait = "100ms")]
    fn middle(&self) -> Pin<Box<dyn Future<Output = Pair> + Send + '_>> {
        Box::pin(async move { Ok((here(), inner().await?)) })
    }
}

#[distributed_lock(key = "stock", wait = "100ms")]
async fn inner() -> Result<(u32, u64), Error> {
    Ok(here())
}

#[tokio::test]
async fn nested_calls_enter_three_deep_through_other_functions_and_a_trait_object() {
    with_manager(|manager| async move {
        let [(a, first), (b, second), (c, third)] = outer().await.unwrap();
        assert_eq!((a, b, c), (1, 2, 3));
        assert!(first == second && second == third, "one acquisition, one fencing token");
        assert_eq!(manager.holder("stock").await.unwrap(), None);
        assert!(lockattr::current().is_none());
    })
    .await;
}

#[distributed_lock(key = "stock", wait = "10s")]
async fn exclusive(inside: &AtomicUsize) -> Result<u32, Error> {
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two branches inside at once");
    sleep(SECOND / 10).await;
    inside.fetch_sub(1, Ordering::SeqCst);
    Ok(here().0)
}

#[tokio::test(start_paused = true)]
async fn branches_of_a_join_take_turns_inside_and_outside_a_holder() {
    with_manager(|manager| async move {
        let inside = AtomicUsize::new(0);
        let (a, b) = tokio::join!(exclusive(&inside), exclusive(&inside));
        assert_eq!((a.unwrap(), b.unwrap()), (1, 1));

        let body = async |_: &Lease| {
            let (a, b, c) =
                tokio::join!(exclusive(&inside), exclusive(&inside), exclusive(&inside));
            assert_eq!((a.unwrap(), b.unwrap(), c.unwrap()), (2, 2, 2));
        };
        manager.with_lock("stock", LockOptions::new(), body).await.unwrap();
    })
    .await;
}

/// A child's own children compete for the child's gate, not for the one that it passed itself.
#[tokio::test(start_paused = true)]
async fn grandchildren_take_turns_without_a_deadlock() {
    with_manager(|manager| async move {
        let inside = AtomicUsize::new(0);
        let branch = async || {
            let body = async |lease: &Lease| {
                assert_eq!(lease.depth(), 2);
                let (a, b) = tokio::join!(exclusive(&inside), exclusive(&inside));
                assert_eq!((a.unwrap(), b.unwrap()), (3, 3));
            };
            manager.with_lock("stock", LockOptions::new(), body).await.unwrap();
        };
        let body = async |_: &Lease| {
            tokio::join!(branch(), branch());
        };
        manager.with_lock("stock", LockOptions::new(), body).await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_branch_out_of_wait_budget_is_contended_by_its_own_chain() {
    with_manager(|manager| async move {
        let body = async |_: &Lease| {
            let slow = manager.with_lock("stock", LockOptions::new(), async |_| {
                sleep(5 * SECOND).await;
            });
            let started = Instant::now();
            let (slow, hasty) = tokio::join!(slow, async { (inner().await, started.elapsed()) });
            slow.unwrap();
            let (error, waited) = (hasty.0.unwrap_err(), hasty.1);
            let Error::Contended { holder: Some(holder), .. } = error else { panic!("{error:?}") };
            assert_eq!(holder.process, Some(std::process::id()));
            assert!(waited < SECOND);
        };
        manager.with_lock("stock", LockOptions::new(), body).await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_spawned_task_is_a_foreign_client_unless_it_inherits() {
    with_manager(|manager| async move {
        let body = async |lease: &Lease| {
            let stranger = manager.clone();
            let stranger = tokio::spawn(async move { stranger.scope(inner()).await });
            assert!(matches!(stranger.await.unwrap(), Err(Error::Contended { .. })));

            let member = tokio::spawn(lockattr::inherit(inner())).await.unwrap().unwrap();
            assert_eq!(member, (2, lease.fencing_token().get()));
        };
        manager.with_lock("stock", LockOptions::new(), body).await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_heir_that_outlives_the_hold_gets_lost_and_not_the_lock() {
    with_manager(|manager| async move {
        let mut heirs = JoinSet::new();
        let body = async |_: &Lease| {
            heirs.spawn(lockattr::inherit(async {
                sleep(SECOND).await;
                inner().await
            }));
        };
        manager.with_lock("stock", LockOptions::new(), body).await.unwrap();
        let error = heirs.join_next().await.unwrap().unwrap().unwrap_err();
        assert!(matches!(error, Error::Lost { reason: LostReason::Released, .. }), "{error:?}");
    })
    .await;
}

#[distributed_lock(key = "stock", reentrant = false, wait = "100ms")]
async fn never_nested() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_reentrancy_a_nested_call_is_refused_at_once() {
    with_manager(|manager| async move {
        never_nested().await.unwrap();
        let started = Instant::now();
        let nested = manager.with_lock("stock", LockOptions::new(), async |_| never_nested().await);
        let error = nested.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Reentered { ref key } if key == "stock"), "{error:?}");
        assert_eq!(started.elapsed(), Duration::ZERO);
        never_nested().await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn other_keys_and_other_managers_are_not_entered_again() {
    with_manager(|manager| async move {
        let other = LockManager::builder().url("memory://").build().unwrap();
        let body = async |outer: &Lease| {
            let key = manager.acquire("other", LockOptions::new()).await.unwrap();
            let store = other.acquire("stock", LockOptions::new()).await.unwrap();
            assert_eq!((key.depth(), store.depth()), (1, 1));
            // Through a hold on another key the chain still reaches the outer hold.
            let nested = key.scope(inner()).await.unwrap();
            assert_eq!(nested, (2, outer.fencing_token().get()));
        };
        manager.with_lock("stock", LockOptions::new(), body).await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_of_a_lost_hold_does_not_run() {
    with_manager(|manager| async move {
        let ran = Arc::new(AtomicUsize::new(0));
        let guard =
            manager.acquire("stock", LockOptions::new().ttl(SECOND).renew(false)).await.unwrap();
        sleep(2 * SECOND).await;
        let nested = manager.with_lock("stock", LockOptions::new(), async |_| {
            ran.fetch_add(1, Ordering::SeqCst);
        });
        assert!(matches!(guard.scope(nested).await, Err(Error::Lost { .. })));
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_nested_body_is_cancelled_with_the_hold_around_it() {
    with_manager(|manager| async move {
        let guard =
            manager.acquire("stock", LockOptions::new().ttl(SECOND).renew(false)).await.unwrap();
        let nested = manager.with_lock("stock", LockOptions::new(), async |_| {
            sleep(60 * SECOND).await;
        });
        let started = Instant::now();
        assert!(matches!(guard.scope(nested).await, Err(Error::Lost { .. })));
        assert!(started.elapsed() < SECOND);
    })
    .await;
}

#[tokio::test]
async fn a_nested_guard_ends_its_turn_on_release_and_on_drop() {
    with_manager(|manager| async move {
        let guard = manager.acquire("stock", LockOptions::new()).await.unwrap();
        let once = LockOptions::new().wait(Duration::ZERO);
        let nested = || guard.scope(manager.try_acquire("stock", once.clone()));
        let first = nested().await.unwrap().expect("the turn is free");
        assert!(nested().await.unwrap().is_none(), "one at a time");
        first.release().await.unwrap();
        drop(nested().await.unwrap().expect("released"));
        let last = nested().await.unwrap().expect("dropped");
        guard.release().await.unwrap();
        assert!(matches!(last.release().await, Err(Error::Lost { .. })));
    })
    .await;
}

/// The chain follows from where a call is made, not from where a guard was acquired.
#[tokio::test(start_paused = true)]
async fn a_scope_is_nested_in_the_calls_around_it() {
    with_manager(|manager| async move {
        let account = manager.acquire("account", LockOptions::new()).await.unwrap();
        let body = async |_: &Lease| account.scope(inner()).await;
        let nested = manager.with_lock("stock", LockOptions::new(), body).await.unwrap();
        assert_eq!(nested.unwrap().0, 2, "waited for itself");
    })
    .await;
}
