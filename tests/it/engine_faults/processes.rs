//! Processes that are killed (`kill -9`) or stopped (SIGSTOP).

use std::time::Duration;

use lockattr_tests::{Engine, in_time};
use tokio::time::Instant;

use super::{Case, add_one};

pub(super) async fn the_lock_of_a_killed_holder_goes_to_the_next_when_its_lease_ends<E: Engine>(
    case: Case<'_, E>,
) {
    let mut holder = case.node(&case.short_url());
    case.acquire_in(&mut holder).await;
    assert!(!case.left().await.is_empty(), "what is left would be seen");
    let waiting = case.spawn_waiter(case.manager().await);
    let acquired = Instant::now();
    holder.say("left").await;
    let reply = holder.line().await;
    let left = reply.strip_prefix("left ").and_then(|left| left.parse().ok());
    let left = Duration::from_millis(left.unwrap_or_else(|| panic!("the node replied: {reply}")));
    holder.kill();
    let after = in_time(waiting).await.unwrap() - acquired;
    assert!(after >= left, "after {after:?}, when the lease was good for {left:?}");
    case.nothing_left().await;
}

/// The turn of a killed process comes.
pub(super) async fn a_killed_head_of_the_queue_is_passed_over<E: Engine>(case: Case<'_, E>) {
    let manager = case.manager().await;
    let holder = case.acquire(&manager).await;
    let mut head = case.node(&case.long_url());
    head.say(&format!("acquire {}", case.key)).await;
    case.waits(1).await;
    let waiting = case.spawn_waiter(case.manager().await);
    case.waits(2).await;
    add_one(&case.resource, &holder).await;
    head.dies().await;
    holder.release().await.unwrap();
    // Leases would last longer: the first holder's, which the waiter learned of, and one of the head.
    in_time(waiting).await.unwrap();
    case.nothing_left().await;
}

pub(super) async fn a_holder_stopped_past_its_lease_writes_no_more<E: Engine>(case: Case<'_, E>) {
    let mut holder = case.node(&case.short_url());
    case.acquire_in(&mut holder).await;
    holder.say("write").await;
    assert_eq!(holder.line().await, "written");
    holder.stop_signal();
    let manager = case.manager().await;
    let next = case.acquire(&manager).await;
    add_one(&case.resource, &next).await;
    // Both commands are waiting when the process continues.
    holder.say("write").await;
    holder.say("release").await;
    holder.continue_signal();
    for _ in 0..2 {
        let reply = holder.line().await;
        assert!(reply.starts_with("refused the lease on "), "{reply}");
    }
    next.ensure_held().expect("the late release frees no lock");
    add_one(&case.resource, &next).await;
    next.release().await.expect("another process held it meanwhile");
    assert!(holder.finish().await.success());
    case.nothing_left().await;
}
