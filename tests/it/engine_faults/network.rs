//! The network of one process fails, while all others keep theirs.

use std::time::Duration;

use lockattr::{Error, LockOptions};
use lockattr_tests::{Engine, Wires, eventually, in_time};
use tokio::time::Instant;

use super::case::acquire_at_last;
use super::{Case, add_one};

/// How the holder's network fails.
#[derive(Clone, Copy)]
enum Failure {
    /// Connections end, and new ones are refused.
    Cut,
    /// Nothing arrives, and no connection reports an error. What was sent arrives when the network
    /// is back.
    Silent,
}

pub(super) async fn a_holder_that_is_cut_off_has_lost_before_the_next_gets_in<E: Engine>(
    case: Case<'_, E>,
) {
    away(case, Failure::Cut).await;
}

pub(super) async fn a_holder_whose_network_is_silent_has_lost_before_the_next_gets_in<E: Engine>(
    case: Case<'_, E>,
) {
    away(case, Failure::Silent).await;
}

async fn away<E: Engine>(case: Case<'_, E>, failure: Failure) {
    let wires = Wires::before(case.engine).await;
    let manager = case.short_over(&wires).await;
    let holder = case.acquire_at_last(&manager).await;
    add_one(&case.resource, &holder).await;
    let (lease, key, next) = ((*holder).clone(), case.key, case.manager().await);
    let waiting = tokio::spawn(async move {
        let guard = next.acquire(key, LockOptions::new()).await.unwrap();
        (guard, lease.ensure_held().is_ok())
    });
    case.waits(1).await;
    match failure {
        Failure::Cut => wires.cut().await,
        Failure::Silent => wires.hold(),
    }
    in_time(holder.lost()).await;
    let (next, both) = in_time(waiting).await.unwrap();
    assert!(!both, "two holders at once");
    add_one(&case.resource, &next).await;
    assert!(!case.resource.add(&holder, Duration::ZERO).await.unwrap(), "it writes no more");
    holder.release().await.unwrap_err();
    wires.pass().await;
    // What the network held back has arrived by now, or has been sent again.
    acquire_at_last(&manager, &format!("{}_warm", case.key)).await.release().await.ok();
    next.ensure_held().expect("the late release frees no lock");
    add_one(&case.resource, &next).await;
    next.release().await.expect("another process held it meanwhile");
    case.nothing_left().await;
}

/// The waiter received no notification: neither a grant nor one to ask again.
pub(super) async fn a_waiter_that_is_cut_off_gets_in_when_the_network_is_back<E: Engine>(
    case: Case<'_, E>,
) {
    let direct = case.manager().await;
    let holder = case.acquire(&direct).await;
    let wires = Wires::before(case.engine).await;
    let manager = case.manager_over(&wires).await;
    let waiting = case.spawn_waiter(manager);
    case.waits(1).await;
    wires.cut().await;
    add_one(&case.resource, &holder).await;
    holder.release().await.unwrap();
    assert!(!waiting.is_finished(), "granted over a network that is down");
    wires.pass().await;
    in_time(waiting).await.unwrap();
    case.nothing_left().await;
}

pub(super) async fn a_waiter_that_is_cut_off_times_out_and_leaves_nothing<E: Engine>(
    case: Case<'_, E>,
) {
    let direct = case.manager().await;
    let holder = case.acquire(&direct).await;
    let wires = Wires::before(case.engine).await;
    let manager = case.manager_over(&wires).await;
    for failure in [Failure::Cut, Failure::Silent] {
        let (key, manager) = (case.key, manager.clone());
        let (began, max_wait) = (Instant::now(), Duration::from_secs(2));
        let waiting = tokio::spawn(async move {
            manager.acquire(key, LockOptions::new().wait(max_wait)).await.map(|_| ())
        });
        // A waiter that the machine lets wait for long may have given up by now.
        eventually("it waits", async || waiting.is_finished() || case.left().await.len() > 1).await;
        match failure {
            Failure::Cut => wires.cut().await,
            Failure::Silent => wires.hold(),
        }
        let given_up = in_time(waiting).await.unwrap();
        let after = began.elapsed();
        let error = given_up.expect_err("the holder acquires");
        assert!(matches!(error, Error::Store { .. } | Error::Contended { .. }), "{error:?}");
        assert!(max_wait <= after, "gave up after {after:?}");
        wires.pass().await;
    }
    holder.ensure_held().unwrap();
    add_one(&case.resource, &holder).await;
    holder.release().await.unwrap();
    case.nothing_left().await;
}

pub(super) async fn an_acquire_without_an_answer_leaves_nothing<E: Engine>(case: Case<'_, E>) {
    let wires = Wires::before(case.engine).await;
    let manager = case.quick_over(&wires).await;
    wires.swallow_replies();
    let refused = in_time(manager.acquire(case.key, LockOptions::new().retry(0))).await.map(drop);
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    wires.pass().await;
    in_time(case.spawn_waiter(case.manager().await)).await.unwrap();
    case.nothing_left().await;
    case.acquire_at_last(&manager).await.release().await.ok();
    case.nothing_left().await;
}

/// The release was executed, or never arrived.
pub(super) async fn a_release_without_an_answer_frees_the_lock<E: Engine>(case: Case<'_, E>) {
    let wires = Wires::before(case.engine).await;
    let manager = case.quick_over(&wires).await;
    for executed in [true, false] {
        let holder = case.acquire_at_last(&manager).await;
        add_one(&case.resource, &holder).await;
        let waiting = case.spawn_waiter(case.manager().await);
        case.waits(1).await;
        match executed {
            true => wires.swallow_replies(),
            false => wires.swallow(),
        }
        let released = in_time(holder.release()).await;
        assert!(matches!(released, Err(Error::Store { .. })), "{released:?}");
        wires.pass().await;
        in_time(waiting).await.unwrap();
        case.nothing_left().await;
    }
}

pub(super) async fn a_caller_dropped_during_a_network_outage_leaves_nothing<E: Engine>(
    case: Case<'_, E>,
) {
    let wires = Wires::before(case.engine).await;
    let manager = case.manager_over(&wires).await;
    for replies_only in [false, true] {
        let before = wires.came();
        match replies_only {
            true => wires.hold_replies(),
            false => wires.hold(),
        }
        let (key, cloned) = (case.key, manager.clone());
        let caller =
            tokio::spawn(async move { cloned.acquire(key, LockOptions::new()).await.map(drop) });
        let executed = async || match replies_only {
            true => !case.left().await.is_empty(),
            false => wires.came() > before,
        };
        eventually("its request is under way", executed).await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled(), "it got no reply");
        wires.pass().await;
        in_time(case.spawn_waiter(case.manager().await)).await.unwrap();
        case.nothing_left().await;
    }
    in_time(case.spawn_waiter(manager)).await.unwrap();
    case.nothing_left().await;
}

/// A round trip of a hundred milliseconds is not a fault, and must not be treated as one.
pub(super) async fn a_slow_network_loses_nothing<E: Engine>(case: Case<'_, E>) {
    let wires = Wires::before(case.engine).await;
    let managers = [case.manager_over(&wires).await, case.manager_over(&wires).await];
    wires.delay(Duration::from_millis(50));
    let turns = 6;
    let waiting: Vec<_> =
        (0..turns).map(|turn| case.spawn_waiter(managers[turn % 2].clone())).collect();
    for waiting in waiting {
        in_time(waiting).await.unwrap();
    }
    assert_eq!(case.resource.count(), turns as u64);
    case.nothing_left().await;
}
