//! Annotated functions, called as a program calls them.

use std::pin::Pin;
use std::time::Duration;

use lockattr::{Error, distributed_lock};

use super::nemesis::Fate;
use super::sweep::Scenario;
use super::world::{Case, LEASE, OTHER_KEY, ticks};

/// The argument that turns `job:<id>` into [`OTHER_KEY`].
const ID: u64 = 7;

#[distributed_lock(key = "job:<id>", wait = "25ms", retry_delay = "1ms")]
async fn job(id: u64) -> Result<(), Error> {
    ticks(1).await;
    ticks(1).await;
    assert_eq!(lockattr::current().unwrap().key(), OTHER_KEY);
    Ok(())
}

const JOB: Scenario =
    Scenario::of("annotated", |world| Box::pin(async move { Case::of(world.ours.scope(job(ID))) }))
        .ends("ok", 7, 203);

const BUSY: Scenario = Scenario::of("annotated: waits until another lets go", |world| {
    Box::pin(async move {
        let other = world.other_holds(OTHER_KEY).await;
        other.release_after(Duration::from_millis(6));
        Case::of(world.ours.scope(job(ID))).with_other(other)
    })
})
.ends("ok", 8, 219);

#[distributed_lock(key = "job:<id>", wait = "0s", on_busy = skip)]
async fn once(id: u64) -> Result<Option<u64>, Error> {
    ticks(1).await;
    ticks(1).await;
    Ok(Some(id))
}

const RUNS: Scenario = Scenario::of("annotated, on_busy = skip: runs", |world| {
    Box::pin(async move {
        let call = world.ours.scope(once(ID));
        Case::of(async { call.await.map(|ran| assert!(ran.is_some())) })
    })
})
.ends("ok", 7, 179);

const SKIPPED: Scenario = Scenario::of("annotated, on_busy = skip: skipped", |world| {
    Box::pin(async move {
        let other = world.other_holds(OTHER_KEY).await;
        let call = world.ours.scope(once(ID));
        Case::of(async { call.await.map(|ran| assert!(ran.is_none())) }).with_other(other)
    })
})
.ends("ok", 2, 73);

#[distributed_lock(key = "job:<id>", release = background)]
async fn outer(id: u64) -> Result<(), Error> {
    ticks(1).await;
    job(id).await?;
    ticks(1).await;
    Ok(())
}

const NESTED: Scenario = Scenario::of("annotated: nested, released in the background", |world| {
    Box::pin(async move { Case::of(world.ours.scope(outer(ID))) })
})
.ends("ok", 8, 232);

/// Two independent calls: one waits for the other's release.
const JOINED: Scenario = Scenario::of("annotated: two calls joined", |world| {
    Box::pin(async move {
        let calls = async { tokio::try_join!(job(ID), job(ID)).map(drop) };
        Case::of(world.ours.scope(calls))
    })
})
.ends("ok", 10, 252);

#[distributed_lock(key = "job:<id>", on_lost = error)]
async fn both(id: u64) -> Result<(), Error> {
    tokio::try_join!(job(id), job(id)).map(drop)
}

const TURNS: Scenario = Scenario::of("annotated: two calls that take turns inside", |world| {
    Box::pin(async move { Case::of(world.ours.scope(both(ID))) })
})
.ends("ok", 10, 285);

#[distributed_lock(key = "job:<id>", ttl = LEASE / 2, lease = lease)]
fn extends(id: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> {
    Box::pin(async move {
        ticks(1).await;
        lease.extend(LEASE).await?;
        lease.ensure_held()
    })
}

const EXTENDS: Scenario =
    Scenario::of("annotated: a boxed future that extends its lease", |world| {
        Box::pin(async move { Case::of(world.ours.scope(extends(ID))) })
    })
    .ends("ok", 8, 308);

#[distributed_lock(key = "job:<id>", retry = 1, on_unavailable = run_unlocked)]
async fn anyway(id: u64) -> Result<(), Error> {
    ticks(2).await;
    assert!(lockattr::current().is_none_or(|lease| lease.key() == OTHER_KEY));
    Ok(())
}

/// One acquire takes effect without a reply; the other is not even sent.
const UNLOCKED: Scenario = Scenario::of("annotated, on_unavailable = run_unlocked", |world| {
    Box::pin(async move {
        world.store.first(&[Fate::Failed, Fate::NotSent]);
        Case::of(world.ours.scope(anyway(ID)))
    })
})
.ends("ok", 5, 207);

sweeps! {
    fn an_annotated_call_leaves_nothing() = JOB;
    fn an_annotated_call_that_waits_for_another_leaves_nothing() = BUSY;
    fn an_annotated_call_that_might_be_skipped_leaves_nothing() = RUNS;
    fn an_annotated_call_that_is_skipped_leaves_nothing() = SKIPPED;
    fn a_nested_annotated_call_leaves_nothing() = NESTED;
    fn two_annotated_calls_joined_leave_nothing() = JOINED;
    fn two_annotated_calls_that_take_turns_leave_nothing() = TURNS;
    fn an_annotated_boxed_future_leaves_nothing() = EXTENDS;
    fn an_annotated_call_that_runs_without_its_lock_leaves_nothing() = UNLOCKED;
}
