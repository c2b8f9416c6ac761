//! A shutdown whose future is dropped.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use lockattr::LockOptions;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::sweep::Scenario;
use super::world::{Case, Survivor, World};

fn shutdown(world: World) -> Case {
    Case::of(async move {
        world.ours.shutdown().await;
        Ok(())
    })
}

/// The shutdown waits for the guard, revokes its lock, and waits for the store.
const HELD: Scenario = Scenario::of("shutdown: a guard that stays", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new()).await;
        shutdown(world).with_survivor(Survivor::ShutDown(guard))
    })
})
.ends("ok", 2, 76);

const RUNNING: Scenario = Scenario::of("shutdown: a body that stops", |world| {
    Box::pin(async move {
        let (mut calls, started) = (JoinSet::new(), Arc::<Notify>::default());
        let (manager, starts) = (world.ours.clone(), started.clone());
        calls.spawn(async move {
            let body = async |_: &_| {
                starts.notify_one();
                pending::<()>().await;
            };
            manager.with_lock("a", LockOptions::new(), body).await
        });
        started.notified().await;
        shutdown(world).with_survivor(Survivor::Called(calls))
    })
})
.ends("ok", 1, 51);

const ASKING: Scenario = Scenario::of("shutdown: an acquire on its way", |world| {
    Box::pin(async move {
        let (mut calls, manager) = (JoinSet::new(), world.ours.clone());
        calls.spawn(async move { manager.acquire("a", LockOptions::new()).await.map(drop) });
        // The request is sent but has not arrived.
        tokio::time::sleep(Duration::from_millis(1)).await;
        shutdown(world).with_survivor(Survivor::Called(calls))
    })
})
.ends("ok", 2, 69);

const RELEASING: Scenario = Scenario::of("shutdown: a release on its way", |world| {
    Box::pin(async move {
        drop(world.held(LockOptions::new()).await);
        shutdown(world)
    })
})
.ends("ok", 1, 40);

sweeps! {
    fn a_shutdown_notifies_a_guard_that_stays() = HELD;
    fn a_shutdown_notifies_the_bodies() = RUNNING;
    fn a_shutdown_notifies_callers_that_still_wait() = ASKING;
    fn a_shutdown_leaves_pending_releases_alone() = RELEASING;
}
