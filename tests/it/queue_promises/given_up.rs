//! Waiters that give up while the store cannot be told: the waiters behind them lose one TTL at
//! most.

use lockattr_tests::{Wires, in_time};
use tokio::task::JoinSet;

use super::*;

/// Ten callers give up while their network is cut. When it is back, nothing of theirs blocks
/// others.
pub(super) async fn waiters_that_gave_up_while_they_were_cut_off_delay_no_other<T: Topology>(
    case: Case<'_, T>,
) {
    let (first, next) = (case.manager().await, case.manager().await);
    let wires = Wires::before(case.engine).await;
    let fickle = case.short_over(&wires).await;
    let permit = LockOptions::new().permits(1);
    let holder = first.acquire(case.key, permit.clone()).await.unwrap();
    let mut waiters = JoinSet::new();
    let before = of(&case, case.key).await;
    for _ in 0..10 {
        let (fickle, permit, key) = (fickle.clone(), permit.clone(), case.key);
        waiters.spawn(async move { fickle.acquire(key, permit).await.map(drop) });
    }
    more_than(&case, case.key, &before).await;
    wires.hold();
    waiters.shutdown().await;
    // Longer than a lease: after that, a release need not be retried.
    sleep(case.lease() + Duration::from_secs(1)).await;
    let waiter = spawn_waiter(&case, &next, case.key, permit).await;
    wires.cut().await;
    wires.pass().await;
    // Their process waits for another lock of the same slot, so it would receive a grant to the
    // waiters that are gone.
    let other = format!("{{lock:{}}}_other", case.key);
    let elsewhere = first.acquire(&other, LockOptions::new()).await.unwrap();
    let listens = spawn_waiter(&case, &fickle, &other, LockOptions::new()).await;
    holder.release().await.unwrap();
    let guard = in_time(waiter).await.unwrap().expect("the others have given up");
    guard.release().await.unwrap();
    elsewhere.release().await.unwrap();
    // A release without a reply is retried in the background.
    in_time(listens).await.unwrap().unwrap().release().await.ok();
    case.nothing_left().await;
}

/// The waiter that would have learned of a shorter lease has given up. The waiter behind it asks by
/// itself.
pub(super) async fn a_killed_holder_behind_a_waiter_that_gave_up_costs_one_ttl<T: Topology>(
    case: Case<'_, T>,
) {
    let (first, next) = (case.manager().await, case.manager().await);
    let wires = Wires::before(case.engine).await;
    let fickle = case.short_over(&wires).await;
    let holder = first.acquire(case.key, LockOptions::new()).await.unwrap();
    let mut short = node!("lock", url = case.short_url());
    let before = of(&case, case.key).await;
    short.say(&format!("acquire {}", case.key)).await;
    more_than(&case, case.key, &before).await;
    let gives_up = spawn_waiter(&case, &fickle, case.key, LockOptions::new()).await;
    let waiter = spawn_waiter(&case, &next, case.key, LockOptions::new()).await;
    wires.hold();
    gives_up.abort();
    holder.release().await.unwrap();
    let reply = short.line().await;
    assert!(reply.starts_with("held "), "the node replied: {reply}");
    short.kill();
    // First the killed holder's lease or session must end, then the grant or the entry of the
    // waiter that gave up.
    let guard = in_time(waiter).await.unwrap().expect("all before it are gone");
    guard.release().await.unwrap();
    wires.pass().await;
    case.nothing_left().await;
}
