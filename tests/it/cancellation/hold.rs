//! Futures that inspect a hold, run inside it, or release it.

use std::future::poll_fn;
use std::task::Poll;

use lockattr::{Error, Lease, LockManager, LockOptions};
use tokio::time::{Instant, sleep};

use super::stepped::TRIP;
use super::sweep::Scenario;
use super::world::{Case, LEASE, Survivor, ticks};

const EXTEND: Scenario = Scenario::of("extend", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new().ttl(LEASE / 2)).await;
        let lease = Lease::clone(&guard);
        Case::of(async move { lease.extend(LEASE).await }).with_surviving_hold(guard)
    })
})
.ends("ok", 2, 73);

/// The future wakes at every deadline that a renewal has meanwhile moved.
const LOST: Scenario = Scenario::of("lost: by `max_hold`", |world| {
    Box::pin(async move {
        let at_most_until = Some(Instant::now() + 4 * LEASE / 3);
        let guard = world.held(LockOptions::new().max_hold(3 * LEASE / 2)).await;
        let lease = Lease::clone(&guard);
        let lost = async move {
            lease.lost().await;
            Ok(())
        };
        Case::of(lost).with_survivor(Survivor::Held { guard, at_most_until })
    })
})
.ends("ok", 2, 67);

const LOST_BY_RELEASE: Scenario = Scenario::of("lost: by the guard's drop", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new()).await;
        let lease = Lease::clone(&guard);
        tokio::spawn(async move {
            ticks(2).await;
            drop(guard);
        });
        Case::of(async move {
            let began = Instant::now();
            lease.lost().await;
            assert!(began.elapsed() < LEASE / 2, "not notified of the release");
            Ok(())
        })
    })
})
.ends("ok", 1, 31);

const HOLDER: Scenario = Scenario::of("holder", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new()).await;
        let manager = world.ours.clone();
        Case::of(async move { manager.holder("a").await.map(drop) }).with_surviving_hold(guard)
    })
})
.ends("ok", 2, 73);

/// A critical section without `with_lock`.
async fn works(manager: LockManager) -> Result<(), Error> {
    ticks(1).await;
    let guard = manager.acquire("a", LockOptions::new()).await?;
    ticks(1).await;
    guard.release().await
}

const GUARD_SCOPE: Scenario = Scenario::of("LockGuard::scope", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new()).await;
        Case::of(guard.scope(works(world.ours))).with_surviving_hold(guard)
    })
})
.ends("ok", 2, 47);

const INHERIT: Scenario = Scenario::of("inherit", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new()).await;
        let heir = poll_fn(|_| Poll::Ready(lockattr::inherit(works(world.ours.clone()))));
        // Created inside the hold and swept outside it, as a spawned task would be.
        let heir = guard.scope(heir).await;
        Case::of(heir).with_surviving_hold(guard)
    })
})
.ends("ok", 2, 47);

const RELEASE: Scenario = Scenario::of("release", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new()).await;
        Case::of(guard.release())
    })
})
.ends("ok", 2, 73);

const LATE_RELEASE: Scenario = Scenario::of("release: another process holds it already", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new().renew(false)).await;
        sleep(LEASE).await;
        let other = world.other_holds("a").await;
        Case::of(guard.release()).with_other(other)
    })
})
.ends("lost", 2, 73);

const DROP: Scenario = Scenario::of("drop of a guard while it is renewed", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new()).await;
        // The lock was requested a round trip ago and is renewed after a third of its lease: half a
        // trip from now.
        sleep(LEASE / 3 - TRIP * 3 / 2).await;
        Case::of(async move {
            ticks(5).await;
            guard.ensure_held()
        })
    })
})
.ends("ok", 5, 137);

const MANAGER_SCOPE: Scenario = Scenario::of("LockManager::scope", |world| {
    Box::pin(async move { Case::of(world.ours.scope(works(world.ours.clone()))) })
})
.ends("ok", 7, 221);

const CONNECT: Scenario = Scenario::of("connect", |world| {
    Box::pin(async move {
        let builder = LockManager::builder().store(world.store.clone());
        Case::of(async { builder.connect().await.map(drop) })
    })
})
.ends("ok", 2, 73);

sweeps! {
    fn an_extend_leaves_the_hold() = EXTEND;
    fn waiting_for_a_loss_leaves_the_hold() = LOST;
    fn waiting_for_a_release_leaves_nothing() = LOST_BY_RELEASE;
    fn reading_the_holder_leaves_the_hold() = HOLDER;
    fn a_scope_of_a_guard_leaves_the_hold_and_the_turn() = GUARD_SCOPE;
    fn an_heir_leaves_the_hold_and_the_turn() = INHERIT;
    fn a_release_leaves_nothing() = RELEASE;
    fn a_release_of_a_lost_lock_leaves_the_next_holder_alone() = LATE_RELEASE;
    fn a_guard_that_is_dropped_during_its_renewal_leaves_nothing() = DROP;
    fn a_scope_of_a_manager_leaves_nothing() = MANAGER_SCOPE;
    fn a_connect_leaves_nothing() = CONNECT;
}
