//! Processes that are killed (`kill -9`) or stopped (SIGSTOP).

use std::time::Duration;

use lockattr_tests::{Engine, Wires};
use tokio::time::{Instant, sleep};

use super::{Case, LIMIT, SLACK, TTL, add_one, expect_acquired_within, short};

pub(super) async fn the_lock_of_a_killed_holder_goes_to_the_next_when_its_lease_ends<E: Engine>(
    case: Case<'_, E>,
) {
    let mut holder = case.node(&case.long_wait_url());
    case.acquire_in(&mut holder).await;
    assert!(!case.left().await.is_empty(), "what is left would be seen");
    let waiting = case.spawn_waiter(case.manager().await);
    let acquired = Instant::now();
    holder.say("left").await;
    let reply = holder.line().await;
    let left = reply.strip_prefix("left ").and_then(|left| left.parse().ok());
    let left = Duration::from_millis(left.unwrap_or_else(|| panic!("the node replied: {reply}")));
    let killed = Instant::now();
    holder.kill();
    let got_in = case.expect_acquired(waiting, killed).await;
    if E::OUTLIVES_ITS_CONNECTION {
        let after = got_in - acquired;
        assert!(after >= left, "after {after:?}, when the lease was good for {left:?}");
    }
    case.nothing_left().await;
}

/// The turn of a killed process comes.
pub(super) async fn a_killed_head_of_the_queue_is_passed_over<E: Engine>(case: Case<'_, E>) {
    let manager = case.manager().await;
    let holder = case.acquire(&manager).await;
    let wires = Wires::before(case.engine).await;
    let mut head = case.node(&wires.url_with(&format!("{}&wait=60s", short::<E>())));
    head.say(&format!("acquire {}", case.key)).await;
    wires.settled(0, LIMIT / 6).await;
    let waiting = case.spawn_waiter(case.manager().await);
    sleep(Duration::from_millis(300)).await;
    add_one(&case.resource, &holder).await;
    head.kill();
    let killed = Instant::now();
    holder.release().await.unwrap();
    // Less than the first holder's lease, the only one that the waiter learned of.
    expect_acquired_within(E::GIVES_UP_WITHIN + SLACK / 2, waiting, killed).await;
    case.nothing_left().await;
}

pub(super) async fn a_holder_stopped_past_its_lease_writes_no_more<E: Engine>(case: Case<'_, E>) {
    let mut holder = case.node(&case.long_wait_url());
    case.acquire_in(&mut holder).await;
    holder.say("write").await;
    assert_eq!(holder.line().await, "written");
    holder.stop_signal();
    let manager = case.manager().await;
    let next = match E::OUTLIVES_ITS_CONNECTION {
        true => {
            let next = case.acquire(&manager).await;
            add_one(&case.resource, &next).await;
            Some(next)
        }
        // No other process can tell that the holder is stopped. Only its own clock tells it
        // afterwards.
        false => {
            sleep(TTL + Duration::from_secs(1)).await;
            None
        }
    };
    // Both commands are waiting when the process continues.
    holder.say("write").await;
    holder.say("release").await;
    holder.continue_signal();
    for _ in 0..2 {
        let reply = holder.line().await;
        assert!(reply.starts_with("refused the lease on "), "{reply}");
    }
    let next = match next {
        Some(next) => {
            next.ensure_held().expect("the late release frees no lock");
            next
        }
        None => case.acquire(&manager).await,
    };
    add_one(&case.resource, &next).await;
    next.release().await.expect("another process held it meanwhile");
    assert!(holder.finish().await.success());
    case.nothing_left().await;
}
