//! Futures that acquire a lock, by `acquire` and `try_acquire`, first and nested.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use tokio::time::sleep;

use super::nemesis::Fate;
use super::sweep::Scenario;
use super::world::{Case, LEASE, OTHER_KEY, World};

async fn acquire(manager: LockManager, key: &str, options: LockOptions) -> Result<(), Error> {
    manager.acquire(key, options).await.map(drop)
}

const FREE: Scenario = Scenario::of("acquire: a free lock", |world| {
    Box::pin(async move { Case::of(acquire(world.ours, "a", LockOptions::new())) })
})
.ends("ok", 3, 119);

const WAITS: Scenario = Scenario::of("acquire: waits until another lets go", |world| {
    Box::pin(async move {
        let other = world.other_holds("a").await;
        other.release_after(Duration::from_millis(11));
        let options = LockOptions::new().wait(Duration::from_millis(30));
        Case::of(acquire(world.ours, "a", options)).with_other(other)
    })
})
.ends("ok", 4, 113);

const GIVES_UP: Scenario = Scenario::of("acquire: gives up after its retries", |world| {
    Box::pin(async move {
        let other = world.other_holds("a").await;
        Case::of(acquire(world.ours, "a", LockOptions::new().retry(2))).with_other(other)
    })
})
.ends("contended", 3, 116);

const OUT_OF_TIME: Scenario = Scenario::of("acquire: gives up when its time is over", |world| {
    Box::pin(async move {
        let other = world.other_holds("a").await;
        let options = LockOptions::new().wait(Duration::from_millis(5));
        Case::of(acquire(world.ours, "a", options)).with_other(other)
    })
})
.ends("contended", 3, 85);

const TRY: Scenario = Scenario::of("try_acquire: a free lock", |world| {
    Box::pin(async move {
        let options = LockOptions::new();
        Case::of(async move { world.ours.try_acquire("a", options).await.map(drop) })
    })
})
.ends("ok", 3, 89);

const TRY_BUSY: Scenario = Scenario::of("try_acquire: another holds", |world| {
    Box::pin(async move {
        let (other, options) = (world.other_holds("a").await, LockOptions::new());
        Case::of(async move { world.ours.try_acquire("a", options).await.map(drop) })
            .with_other(other)
    })
})
.ends("ok", 2, 73);

const ADOPTED: Scenario = Scenario::of("acquire: adopts a grant whose answer was lost", |world| {
    Box::pin(async move {
        world.store.first(&[Fate::Failed]);
        Case::of(acquire(world.ours, "a", LockOptions::new()))
    })
})
.ends("ok", 6, 243);

const LAPSED: Scenario = Scenario::of("acquire: adopts a grant that arrived too late", |world| {
    Box::pin(async move {
        world.store.first(&[Fate::Slow]);
        Case::of(acquire(world.ours, "a", LockOptions::new()))
    })
})
.ends("ok", 6, 240);

const INSIDE_ANOTHER: Scenario = Scenario::of("acquire: a second key inside a hold", |world| {
    Box::pin(async move {
        let guard = world.held(LockOptions::new()).await;
        let second = acquire(world.ours, OTHER_KEY, LockOptions::new());
        Case::of(guard.scope(second)).with_surviving_hold(guard)
    })
})
.ends("ok", 2, 99);

/// A nested call that waits while another nested call has its turn for the time `turn`.
async fn waits_for_turn(world: World, turn: Duration, options: LockOptions) -> Case {
    let guard = world.held(LockOptions::new()).await;
    let before = guard.scope(world.ours.acquire("a", LockOptions::new())).await.unwrap();
    tokio::spawn(async move {
        sleep(turn).await;
        drop(before);
    });
    Case::of(guard.scope(acquire(world.ours, "a", options))).with_surviving_hold(guard)
}

const TURN: Scenario = Scenario::of("acquire, nested: waits for its turn", |world| {
    let turn = Duration::from_millis(5);
    Box::pin(waits_for_turn(world, turn, LockOptions::new().retry(9)))
})
.ends("ok", 1, 31);

const NO_TURN: Scenario =
    Scenario::of("acquire, nested: gives up while waiting for its turn", |world| {
        Box::pin(waits_for_turn(world, LEASE, LockOptions::new().retry(2)))
    })
    .ends("contended", 1, 31);

sweeps! {
    fn an_acquire_of_a_free_lock_leaves_nothing() = FREE;
    fn an_acquire_that_waits_for_another_leaves_nothing() = WAITS;
    fn an_acquire_that_gives_up_leaves_nothing() = GIVES_UP;
    fn an_acquire_that_times_out_leaves_nothing() = OUT_OF_TIME;
    fn a_try_acquire_leaves_nothing() = TRY;
    fn a_try_acquire_of_a_busy_lock_leaves_nothing() = TRY_BUSY;
    fn an_acquire_whose_first_answer_was_lost_leaves_nothing() = ADOPTED;
    fn an_acquire_whose_first_grant_came_too_late_leaves_nothing() = LAPSED;
    fn an_acquire_of_a_second_key_leaves_only_the_first() = INSIDE_ANOTHER;
    fn a_nested_acquire_that_waits_for_its_turn_leaves_the_hold_and_the_turn() = TURN;
    fn a_nested_acquire_that_gives_up_leaves_the_hold_and_the_turn() = NO_TURN;
}
