//! One turn: a lock is acquired and used, and everything is recorded.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use lockattr::{Error, Lease, LockGuard};
use tokio::time::timeout;

use super::World;
use super::chain::{Calls, Chain};
use super::operations::run_operations;
use super::turn::{Turn, Way};
use super::wait_budget::in_time;
use crate::outcome::Complaint;

/// The message of the panics that belong to the work.
pub(super) const PLANNED: &str = "this panic is planned";

pub(super) fn be_quiet_about_planned_panics() {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !is_planned(info.payload()) {
            loud(info);
        }
    }));
}

pub(super) fn is_planned(payload: &(dyn Any + Send)) -> bool {
    payload.downcast_ref::<&str>() == Some(&PLANNED)
}

/// Runs a turn, to its end or until its caller drops it.
pub(super) async fn run_turn(world: &World, turn: &Turn) {
    let id = world.chains.fetch_add(1, Ordering::Relaxed);
    let chain = Chain::new(&world.recorder, id, turn.names());
    let work = async {
        match turn.way {
            Way::Body => in_a_body(world, &chain, turn).await,
            _ => with_a_guard(world, &chain, turn).await,
        }
    };
    let work = AssertUnwindSafe(work).catch_unwind();
    let ended = match turn.dropped_after {
        Some(after) => timeout(after, work).await.unwrap_or(Ok(())),
        None => work.await,
    };
    if let Err(payload) = ended
        && !is_planned(&*payload)
    {
        world.complaints.say(Complaint::Wrong(format!("a panic in {turn:?}")));
    }
}

async fn with_a_guard(world: &World, chain: &Chain<'_>, turn: &Turn) {
    let (manager, options) = (&world.manager, turn.options.clone());
    let calls = chain.invoke_acquire(turn.mode);
    let acquire = async {
        match (turn.way, &*turn.names()) {
            (Way::Tried, [key]) => manager.try_acquire(key, options).await,
            (_, [key]) => manager.acquire(key, options).await.map(Some),
            (_, keys) => manager.acquire_all(keys, options).await.map(Some),
        }
    };
    let Some(outcome) = in_time(world, turn, acquire, || false).await else { return };
    let guard = match outcome {
        Ok(Some(guard)) => guard,
        Ok(None) => return calls.fail(),
        Err(error) => return refused(world, turn, calls, &error),
    };
    calls.ok(Some(guard.fencing_token().get()));
    // Dropped before the guard, wherever both are dropped.
    let mut ends = Ends { chain, lease: Some(Lease::clone(&guard)) };
    guard.scope(run_operations(world, chain, turn, &guard)).await;
    if turn.way == Way::Dropped {
        return;
    }
    let release = ends.now();
    drop(ends);
    release_guard(world, chain, guard, release).await;
}

async fn release_guard(world: &World, chain: &Chain<'_>, guard: LockGuard, release: Option<Calls>) {
    let key = guard.key().to_owned();
    match (guard.release().await, release) {
        (Ok(()), Some(release)) => release.ok(None),
        (Ok(()), None) => {
            let text = format!("`{key}` was lost, and its release reports that it was held");
            world.complaints.say(Complaint::Violation(text));
        }
        (Err(error), release) => {
            if let Error::Lost { .. } = error {
                chain.record_loss();
            }
            if let Some(release) = release {
                release.unknown();
            }
        }
    }
}

async fn in_a_body(world: &World, chain: &Chain<'_>, turn: &Turn) {
    // The calls end when the body begins.
    let calls = Mutex::new(Some(chain.invoke_acquire(turn.mode)));
    let take_calls = || calls.lock().expect("no panic in here").take();
    let has_begun = || calls.lock().expect("no panic in here").is_none();
    let body = async |lease: &Lease| {
        if let Some(calls) = take_calls() {
            calls.ok(Some(lease.fencing_token().get()));
        }
        let _ends = Ends { chain, lease: Some(lease.clone()) };
        run_operations(world, chain, turn, lease).await;
    };
    let locked = world.manager.with_lock(turn.names()[0], turn.options.clone(), body);
    let Some(outcome) = in_time(world, turn, locked, has_begun).await else { return };
    match (outcome, take_calls()) {
        (Err(error), Some(calls)) => refused(world, turn, calls, &error),
        (Err(Error::Lost { .. }), None) => chain.record_loss(),
        (Err(error), None) => {
            let text = format!("the body ran, and its caller gets: {error}");
            world.complaints.say(Complaint::Wrong(text));
        }
        (Ok(()), Some(_)) => {
            world.complaints.say(Complaint::Wrong("the body did not run, and all is well".into()));
        }
        (Ok(()), None) => {}
    }
}

/// A failed acquire may have any error, except one that shows a mistake in the work itself.
fn refused(world: &World, turn: &Turn, calls: Calls, error: &Error) {
    if !matches!(error, Error::Contended { .. } | Error::Store { .. } | Error::Lost { .. }) {
        world.complaints.say(Complaint::Wrong(format!("{error} in {turn:?}")));
    }
    calls.refused(error);
}

/// Records the end of a hold, however it ends.
struct Ends<'a> {
    chain: &'a Chain<'a>,
    lease: Option<Lease>,
}

impl Ends<'_> {
    fn now(&mut self) -> Option<Calls> {
        self.lease.take().and_then(|lease| self.chain.invoke_release(&lease))
    }
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if let Some(release) = self.now() {
            release.unknown();
        }
    }
}
