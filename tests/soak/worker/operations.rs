//! The operations under a lock.

use std::time::Duration;
use std::{panic, thread};

use lockattr::{Error, Lease, LockOptions};
use lockattr_history::Mode;
use tokio::time::sleep;

use super::act::PLANNED;
use super::chain::Chain;
use super::turn::{Operation, Turn};
use super::wait_budget::{SLACK, in_time};
use super::{KEYS, World};
use crate::outcome::Complaint;

/// Runs all operations of a turn, as long as its lease is good.
pub(super) async fn run_operations(world: &World, chain: &Chain<'_>, turn: &Turn, lease: &Lease) {
    for operation in &turn.operations {
        match *operation {
            Operation::Guarded(pause) => guarded(world, chain, turn, lease, pause).await,
            Operation::Nested(pause) => nested(world, chain, turn, pause).await,
            Operation::Extended(ttl) => extended(world, chain, lease, ttl).await,
            Operation::Worked(time) => sleep(time).await,
            #[expect(clippy::disallowed_methods, reason = "the fault that is meant")]
            Operation::Blocked(time) => thread::sleep(time),
            Operation::Panicked => panic::panic_any(PLANNED),
        }
        if !chain.check(lease) {
            return;
        }
    }
}

async fn guarded(world: &World, chain: &Chain<'_>, turn: &Turn, lease: &Lease, pause: Duration) {
    for &key in &turn.keys {
        if !chain.check(lease) {
            return;
        }
        let resource = &world.resources[key];
        let done = match turn.mode {
            Mode::Exclusive => resource.add(lease, pause).await,
            Mode::Shared => resource.watch(lease, pause).await,
            Mode::Permits(_) => {
                sleep(pause).await;
                Ok(true)
            }
        };
        if let Err(fenced) = done {
            world.complaints.say(Complaint::Violation(fenced.to_string()));
        }
    }
}

/// Only an exclusive hold is entered again: a nested call that shares may have to wait for others.
async fn nested(world: &World, chain: &Chain<'_>, turn: &Turn, pause: Duration) {
    if turn.mode != Mode::Exclusive {
        return;
    }
    let key = KEYS[turn.keys[0]];
    let enter = chain.invoke_reenter(key);
    let options = LockOptions::new().wait(SLACK);
    match in_time(world, turn, world.manager.acquire(key, options), || false).await {
        Some(Ok(inner)) => {
            enter.ok(Some(inner.fencing_token().get()));
            if inner.depth() < 2 {
                let text = format!("a nested call on `{key}` has not entered again");
                world.complaints.say(Complaint::Violation(text));
            }
            inner.scope(guarded(world, chain, turn, &inner, pause)).await;
            let leave = chain.invoke_leave(key);
            // Released whether or not it is lost.
            inner.release().await.ok();
            leave.ok(None);
        }
        Some(Err(Error::Lost { .. })) => {
            chain.record_loss();
            enter.fail();
        }
        Some(Err(error)) => {
            let text = format!("a nested call on `{key}` is refused: {error}");
            world.complaints.say(Complaint::Wrong(text));
        }
        None => {}
    }
}

async fn extended(world: &World, chain: &Chain<'_>, lease: &Lease, ttl: Duration) {
    let renew = chain.invoke_renew();
    match lease.extend(ttl).await {
        Ok(()) => renew.ok(None),
        Err(Error::Lost { .. }) => {
            chain.record_loss();
            renew.fail();
        }
        Err(Error::Store { .. }) => renew.unknown(),
        Err(error) => world.complaints.say(Complaint::Wrong(format!("extend: {error}"))),
    }
}
