//! `with_lock`: the acquire, the body at each of its await points, and the release.

use std::time::Duration;

use lockattr::{Lease, LockOptions, OnLost, Release};
use tokio::time::sleep;

use super::sweep::Scenario;
use super::world::{Case, LEASE, OTHER_KEY, ticks};

const MS: Duration = Duration::from_millis(1);

/// A lease short enough that a body of the test spans several renewals.
const SHORT: Duration = Duration::from_millis(60);

const AWAITED: Scenario = Scenario::of("with_lock", |world| {
    Box::pin(async move {
        Case::of(async move {
            let body = async |_: &Lease| ticks(3).await;
            world.ours.with_lock("a", LockOptions::new(), body).await
        })
    })
})
.ends("ok", 8, 245);

const BACKGROUND: Scenario = Scenario::of("with_lock: released in the background", |world| {
    Box::pin(async move {
        Case::of(async move {
            let options = LockOptions::new().release(Release::Background);
            world.ours.with_lock("a", options, async |_: &Lease| ticks(3).await).await
        })
    })
})
.ends("ok", 7, 212);

/// Polls often while a renewal is under way, at 20 and 40 ms, and sleeps in between.
const RENEWED: Scenario = Scenario::of("with_lock: a body of several renewals", |world| {
    Box::pin(async move {
        Case::of(async move {
            let body = async |_: &Lease| {
                for _ in 0..2 {
                    sleep(SHORT / 3 - 5 * MS).await;
                    for _ in 0..6 {
                        sleep(MS).await;
                    }
                }
            };
            world.ours.with_lock("a", LockOptions::new().ttl(SHORT), body).await
        })
    })
})
.ends("ok", 19, 745);

/// Outlasts its lease.
async fn overrun(_: &Lease) {
    sleep(SHORT - 10 * MS).await;
    ticks(5).await;
}

const CANCELLED: Scenario = Scenario::of("with_lock: lost, and cancelled", |world| {
    Box::pin(async move {
        Case::of(async move {
            let options = LockOptions::new().ttl(SHORT).renew(false);
            world.ours.with_lock("a", options, overrun).await
        })
    })
})
.ends("lost", 9, 278);

/// Another process acquires the lock while the body still runs. The call must not release that
/// lock.
const ERROR: Scenario = Scenario::of("with_lock: lost to another, an error", |world| {
    Box::pin(async move {
        let other = world.other_acquires_after("a", SHORT + 5 * MS);
        Case::of(async move {
            let options = LockOptions::new().ttl(SHORT).renew(false).on_lost(OnLost::Error);
            world.ours.with_lock("a", options, overrun).await
        })
        .with_other(other)
    })
})
.ends("lost", 11, 297);

const IGNORED: Scenario = Scenario::of("with_lock: lost, and ignored", |world| {
    Box::pin(async move {
        Case::of(async move {
            let options = LockOptions::new().ttl(SHORT).renew(false).on_lost(OnLost::Ignore);
            world.ours.with_lock("a", options, overrun).await
        })
    })
})
.ends("ok", 11, 305);

const EXTENDED: Scenario = Scenario::of("with_lock: extended by its body", |world| {
    Box::pin(async move {
        Case::of(async move {
            let body = async |lease: &Lease| {
                ticks(1).await;
                lease.extend(LEASE).await
            };
            world.ours.with_lock("a", LockOptions::new().ttl(LEASE / 2), body).await?
        })
    })
})
.ends("ok", 8, 308);

const NESTED: Scenario = Scenario::of("with_lock: nested", |world| {
    Box::pin(async move {
        Case::of(async move {
            let manager = &world.ours;
            let body = async |_: &Lease| {
                ticks(1).await;
                let nested = async |_: &Lease| ticks(2).await;
                manager.with_lock("a", LockOptions::new(), nested).await
            };
            manager.with_lock("a", LockOptions::new(), body).await?
        })
    })
})
.ends("ok", 8, 245);

const TWO_KEYS: Scenario = Scenario::of("with_lock: a second key inside", |world| {
    Box::pin(async move {
        Case::of(async move {
            let manager = &world.ours;
            let body = async |_: &Lease| {
                let inner = async |_: &Lease| ticks(1).await;
                manager.with_lock(OTHER_KEY, LockOptions::new(), inner).await
            };
            manager.with_lock("a", LockOptions::new(), body).await?
        })
    })
})
.ends("ok", 10, 433);

const TURNS: Scenario = Scenario::of("with_lock: two branches that take turns inside", |world| {
    Box::pin(async move {
        Case::of(async move {
            let manager = &world.ours;
            let body = async |_: &Lease| {
                let branch = async |_: &Lease| ticks(1).await;
                let long_wait = LockOptions::new().retry(9);
                let first = manager.with_lock("a", long_wait.clone(), branch);
                let second = manager.with_lock("a", long_wait, branch);
                tokio::try_join!(first, second).map(drop)
            };
            manager.with_lock("a", LockOptions::new(), body).await?
        })
    })
})
.ends("ok", 8, 245);

/// The steps of `with_lock`, written by hand.
const BY_HAND: Scenario = Scenario::of("acquire, scope, extend, release by hand", |world| {
    Box::pin(async move {
        Case::of(async move {
            let guard = world.ours.acquire("a", LockOptions::new().ttl(LEASE / 2)).await?;
            guard.scope(ticks(2)).await;
            guard.extend(LEASE).await?;
            guard.release().await
        })
    })
})
.ends("ok", 9, 293);

sweeps! {
    fn a_body_and_its_awaited_release_leave_nothing() = AWAITED;
    fn a_body_and_its_release_in_the_background_leave_nothing() = BACKGROUND;
    fn a_body_that_is_dropped_during_a_renewal_leaves_nothing() = RENEWED;
    fn a_body_that_is_cancelled_by_its_loss_leaves_nothing() = CANCELLED;
    fn a_body_that_continues_after_its_loss_leaves_the_next_holder_alone() = ERROR;
    fn a_body_that_ignores_its_loss_leaves_nothing() = IGNORED;
    fn a_body_that_extends_its_lease_leaves_nothing() = EXTENDED;
    fn a_nested_body_leaves_nothing() = NESTED;
    fn a_body_that_holds_two_locks_leaves_neither() = TWO_KEYS;
    fn branches_that_take_turns_leave_nothing() = TURNS;
    fn a_lock_acquired_without_the_attribute_leaves_nothing() = BY_HAND;
}
