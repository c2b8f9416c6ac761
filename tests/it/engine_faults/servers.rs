//! Servers that are killed and come back with their data, or are stopped.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Engine, eventually, in_time};
use tokio::time::Instant;

use super::{Case, add_one, connected};

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
    case.waits(2).await;

    let (began, left) = (Instant::now(), holder.remaining());
    case.engine.restart().await;
    if began.elapsed() < left / 2 {
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
    for waiting in waiting {
        in_time(waiting).await.unwrap();
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
    let manager = connected(&case.short_url()).await;
    let holder = case.acquire(&manager).await;
    add_one(&case.resource, &holder).await;
    let waiting = case.spawn_waiter(case.manager().await);
    case.waits(1).await;
    let quick = connected(&case.engine.url_with(E::QUICK)).await;

    case.engine.freeze();
    let refused = in_time(quick.acquire("other", LockOptions::new().retry(0))).await.map(drop);
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    in_time(holder.lost()).await;
    let error = holder.ensure_held().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    let connect = in_time(LockManager::connect(case.engine.url_with(E::QUICK))).await;
    assert!(matches!(connect, Err(Error::Store { .. })));
    case.engine.thaw();

    in_time(waiting).await.unwrap();
    assert!(holder.release().await.is_err(), "lost is lost");
    for manager in [&manager, &quick] {
        can_lock_again(manager, case.key).await;
        can_lock_again(manager, "other").await;
    }
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
