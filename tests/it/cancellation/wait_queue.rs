//! Futures that wait in the queue of their process or of the store, and locks that are kept after
//! their holder.

use std::future::pending;
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions};
use tokio::time::sleep;

use super::stepped::TRIP;
use super::sweep::Scenario;
use super::world::{Case, LEASE, OTHER_KEY, World, ticks};

const MS: Duration = Duration::from_millis(1);

/// How long another process holds the lock.
const BUSY: Duration = Duration::from_millis(11);

fn long_wait() -> LockOptions {
    LockOptions::new().wait(30 * MS)
}

async fn acquire(manager: LockManager, options: LockOptions) -> Result<(), Error> {
    manager.acquire("a", options).await.map(drop)
}

/// Another call of our process holds the lock and releases it after a while.
async fn held_by_us(world: &World) {
    let guard = world.held(LockOptions::new()).await;
    tokio::spawn(async move {
        ticks(2).await;
        drop(guard);
    });
}

const HANDED: Scenario = Scenario::of("acquire: handed off by another call of ours", |world| {
    Box::pin(async move {
        held_by_us(&world).await;
        Case::of(acquire(world.ours, long_wait()))
    })
})
.ends("ok", 1, 31);

const HANDED_BODY: Scenario = Scenario::of("with_lock: handed off, a body, a release", |world| {
    Box::pin(async move {
        held_by_us(&world).await;
        Case::of(async move {
            let body = async |_: &Lease| ticks(3).await;
            world.ours.with_lock("a", long_wait(), body).await
        })
    })
})
.ends("ok", 6, 137);

/// The call wants another lease than the one that is handed off, so its turn is to ask the store.
const TURN_TO_ASK: Scenario = Scenario::of("acquire: at the head of the local queue", |world| {
    Box::pin(async move {
        held_by_us(&world).await;
        Case::of(acquire(world.ours, long_wait().ttl(LEASE / 2)))
    })
})
.ends("ok", 4, 153);

/// The caller is not notified: it asks again when the lease of the dead holder is over.
const LAPSES: Scenario = Scenario::of("acquire: queued behind a lease that ends", |world| {
    Box::pin(async move {
        let dead = LockOptions::new().ttl(10 * MS).renew(false);
        std::mem::forget(world.stranger("dead").acquire("a", dead).await.unwrap());
        Case::of(acquire(world.ours, long_wait()))
    })
})
.ends("ok", 6, 175);

const ALL: Scenario = Scenario::of("acquire_all: two keys, one of them busy", |world| {
    Box::pin(async move {
        let other = world.other_holds(OTHER_KEY).await;
        other.release_after(BUSY);
        let ours = world.ours;
        let both = async move { ours.acquire_all(["a", OTHER_KEY], long_wait()).await.map(drop) };
        Case::of(both).with_other(other)
    })
})
.ends("ok", 4, 113);

/// The manager lives on and keeps the lock for less than a round trip.
const LINGERS: Scenario = Scenario::of("with_lock: twice, by a lock that lingers", |world| {
    Box::pin(async move {
        let builder = LockManager::builder().store(world.store.clone()).service("ours");
        let builder = builder.ttl(LEASE).retry(2).retry_delay(MS);
        let lingering = builder.linger(TRIP / 2).build().unwrap();
        let lives_on = lingering.clone();
        tokio::spawn(async move {
            pending::<()>().await;
            drop(lives_on);
        });
        Case::of(async move {
            for _ in 0..2 {
                let body = async |_: &Lease| ticks(1).await;
                lingering.with_lock("a", LockOptions::new(), body).await?;
                sleep(MS).await;
            }
            Ok(())
        })
    })
})
.ends("ok", 7, 199);

const AT_LEAST: Scenario = Scenario::of("with_lock: held for a while at least", |world| {
    Box::pin(async move {
        Case::of(async move {
            let options = LockOptions::new().hold_at_least(2 * TRIP);
            world.ours.with_lock("a", options, async |_: &Lease| ticks(1).await).await
        })
    })
})
.ends("ok", 6, 205);

sweeps! {
    /// Red without: accepting the notification of a queue place that is dropped.
    fn an_acquire_that_is_handed_the_lock_leaves_nothing() = HANDED;
    /// Red without: a guard that releases its lock when it is dropped.
    fn a_body_whose_lock_was_handed_off_leaves_nothing() = HANDED_BODY;
    /// Red without: queueing in the store behind a lock that is released later.
    fn an_acquire_at_the_head_of_the_local_queue_leaves_nothing() = TURN_TO_ASK;
    /// Red without: a release that removes a claim from the queue.
    fn an_acquire_behind_a_lease_that_ends_by_itself_leaves_nothing() = LAPSES;
    /// Red without: a release of all keys of a claim.
    fn an_acquire_of_two_keys_of_which_one_is_busy_leaves_neither() = ALL;
    /// Red without: releasing a lock that was kept long enough.
    fn a_lock_that_lingers_is_given_up_whatever_is_dropped() = LINGERS;
    /// Red without: a guard that releases its lock when it is dropped.
    fn a_lock_that_is_held_at_least_for_a_while_is_free_after_that() = AT_LEAST;
}
