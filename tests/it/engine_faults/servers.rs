//! Servers that are killed and come back with their data, or are stopped.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Engine, eventually};
use tokio::time::{Instant, sleep, timeout};

use super::{Case, SLACK, TTL, add_one, connected, short};

pub(super) async fn a_restart_with_a_holder_and_waiters_makes_no_second_holder<E: Engine>(
    case: Case<'_, E>,
) {
    let first = case.manager().await;
    let holder = case.acquire(&first).await;
    add_one(&case.resource, &holder).await;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(case.spawn_waiter(case.manager().await));
    }
    sleep(Duration::from_millis(300)).await;

    let (began, left) = (Instant::now(), holder.remaining());
    case.engine.restart().await;
    if E::OUTLIVES_ITS_CONNECTION && began.elapsed() < left / 2 {
        let other = case.manager().await;
        let got_in = other.try_acquire(case.key, LockOptions::new()).await;
        // This check comes last: a lease that is valid now was valid all the time.
        holder.ensure_held().expect("its lease is valid and not reported lost");
        assert!(!matches!(got_in, Ok(Some(_))), "a second holder: its lease did not survive");
    }
    case.resource.add(&holder, Duration::from_millis(1)).await.expect("no second holder");
    let count = case.resource.count();
    // The lease may have expired before the servers were back.
    holder.release().await.ok();
    let released = Instant::now();
    for waiting in waiting {
        case.expect_acquired(waiting, released.max(Instant::now() - SLACK / 2)).await;
    }
    assert!(
        case.resource.count() > count,
        "{} in the resource, after {count}",
        case.resource.count()
    );
    can_lock_again(&first, case.key).await;
    case.nothing_left().await;
}

pub(super) async fn stopped_servers_are_an_outage_and_no_loss_of_order<E: Engine>(
    case: Case<'_, E>,
) {
    let manager = connected(&case.engine.url_with(&short::<E>())).await;
    let holder = case.acquire(&manager).await;
    add_one(&case.resource, &holder).await;
    let waiting = case.spawn_waiter(case.manager().await);
    sleep(Duration::from_millis(300)).await;

    case.engine.freeze();
    let frozen = Instant::now();
    let acquired = timeout(SLACK, manager.acquire("other", LockOptions::new().retry(0))).await;
    let refused = acquired.expect("an answer within its limits").map(|_| ());
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    // A renewal may just have succeeded, so a whole lease counts from here.
    let lost = timeout(
        (frozen + TTL + SLACK / 3).saturating_duration_since(Instant::now()),
        holder.lost(),
    );
    lost.await.expect("lost at its deadline, and not later");
    let error = holder.ensure_held().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    let connect = timeout(SLACK, LockManager::connect(case.engine.url_with(&short::<E>()))).await;
    assert!(matches!(connect.expect("an answer within its limits"), Err(Error::Store { .. })));
    case.engine.thaw();

    case.expect_acquired(waiting, Instant::now()).await;
    assert!(holder.release().await.is_err(), "lost is lost");
    can_lock_again(&manager, case.key).await;
    can_lock_again(&manager, "other").await;
    case.nothing_left().await;
}

async fn can_lock_again(manager: &LockManager, key: &str) {
    eventually("the manager works again", async || {
        match manager.acquire(key, LockOptions::new().retry(0)).await {
            Ok(guard) => guard.release().await.is_ok(),
            Err(Error::Store { .. } | Error::Contended { .. }) => false,
            Err(other) => panic!("{other:?}"),
        }
    })
    .await;
}
