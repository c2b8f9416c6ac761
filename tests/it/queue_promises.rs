//! Tests the promises of the wait queue (docs/queue.md) on every store that keeps one: what dead,
//! stopped and cut-off processes cost other processes, what a crowd of callers learns, and a lock
//! that is taken away by hand.
//!
//! `redis::wait_queue` has the tests that only work on one Redis server. In ZooKeeper and etcd the
//! entries of a process end with its session, so a dead process costs that long there. Not covered
//! here:
//!
//! * in memory: processes that die or are cut off, since everything is in one process, and a lock
//!   that is taken away, which the `force` tests cover;
//! * PostgreSQL: a lock that another program deletes, because no other program writes its tables;
//! * ZooKeeper and etcd: crowds that share a lock, because each caller waits for itself there.
//!
//! Nothing has to be quick: a caller that waits for longer than promised waits for longer than a test does.
//!
//! On a quorum, and for keys in several slots of a cluster, an entry at the head reserves nothing.
//! A stopped process costs less than one TTL there, and a killed one costs nothing if its turn has
//! come.

mod crowd;
mod dead;
mod given_up;
mod memory;
mod own_keys;
mod taken;
mod topology;

use std::collections::BTreeSet;
use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions, Mode};
use lockattr_tests::{Engine, Node, eventually, node};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::engine_faults::Case;
pub(crate) use topology::Topology;

/// Runs the tests of the suite on each topology. All tests of a topology share its servers.
macro_rules! queue_promises {
    ($($name:ident: $topology:ty),* $(,)?; $($rest:tt)*) => {
        $(mod $name {
            type Servers = $topology;

            queue_promises!(all);
            queue_promises!(taken, [a_waiter_acquires_a_deleted_lock_within_its_retry_delay]);
        })*

        queue_promises!(only_ours, $($rest)*);
    };
    (only_ours, $($name:ident: $topology:ty),* $(,)?) => {
        $(mod $name {
            type Servers = $topology;

            queue_promises!(all);
        })*
    };
    (all) => {
        queue_promises!(dead, [
            a_killed_writer_keeps_readers_out_for_a_ttl_at_most,
            a_killed_waiter_for_two_keys_keeps_the_free_one_for_a_ttl_at_most,
            a_stopped_process_costs_one_ttl_however_many_waiters_it_has,
        ]);
        queue_promises!(given_up, [
            waiters_that_gave_up_while_they_were_cut_off_delay_no_other,
            a_killed_holder_behind_a_waiter_that_gave_up_costs_one_ttl,
        ]);
        queue_promises!(crowd, [
            callers_whose_wait_ends_together_are_all_contended,
            a_caller_whose_request_is_sent_just_before_its_deadline_is_contended,
            a_call_that_does_not_wait_gets_its_answer_over_a_slow_network,
            readers_of_one_process_enter_together_when_the_writer_has_gone,
        ]);
        queue_promises!(own_keys, [jobs_with_keys_of_their_own_are_never_contended]);
        queue_promises!(taken, [a_waiter_acquires_a_force_released_lock_within_its_retry_delay]);
    };
    ($file:ident, [$($test:ident),* $(,)?]) => {
        $(#[tokio::test]
        async fn $test() {
            let servers = <Servers as crate::queue_promises::Topology>::shared().await;
            let case = crate::engine_faults::Case::among_others(servers, stringify!($test));
            crate::queue_promises::$file::$test(case).await;
        })*
    };
}

queue_promises! {
    redis: lockattr_tests::RedisServer,
    cluster: lockattr_tests::Cluster,
    sentinel: lockattr_tests::Sentinels,
    replicas: lockattr_tests::Replicated,
    redlock: lockattr_tests::Independents,
    zookeeper: lockattr_tests::ZooKeeper,
    etcd: lockattr_tests::Etcd,
    mysql: lockattr_tests::MariaDb;
    // Only this library deletes locks there.
    postgres: lockattr_tests::PostgresServer,
}

fn shared() -> LockOptions {
    LockOptions::new().mode(Mode::Shared)
}

/// Returns what the store holds for a lock; each entry in its queue is one line. Omits remaining
/// lifetimes and the times in an entry, which a waiter renews with each request.
async fn of<E: Engine>(case: &Case<'_, E>, key: &str) -> BTreeSet<String> {
    let lasting = |line: &str| match line.rsplit_once(", ") {
        Some((lasting, left)) if left.ends_with(" ms left") => lasting.to_owned(),
        _ => line.to_owned(),
    };
    // ZooKeeper escapes braces.
    let plain = |line: &String| line.replace("%7B", "{").replace("%7D", "}");
    let left: Vec<_> = case.left().await.iter().map(plain).collect();
    let ours = left.iter().filter(|line| line.contains(key));
    ours.map(|line| without_times(&lasting(line))).collect()
}

/// Replaces each number that is as long as a time in milliseconds by `#`.
fn without_times(text: &str) -> String {
    let parts = text.split_inclusive(|sign: char| !sign.is_ascii_digit());
    let part = |part: &str| {
        let rest = part.trim_start_matches(|sign: char| sign.is_ascii_digit());
        if part.len() - rest.len() < 13 { part.to_owned() } else { format!("#{rest}") }
    };
    parts.map(part).collect()
}

/// Waits until all servers of the store hold something for `key` that is not in `before`.
async fn more_than<E: Engine>(case: &Case<'_, E>, key: &str, before: &BTreeSet<String>) {
    let mut last = BTreeSet::new();
    eventually("another caller is queued", async || {
        let now = of(case, key).await;
        let is_settled = !now.is_subset(before) && now == last;
        last = now;
        sleep(Duration::from_millis(20)).await;
        is_settled
    })
    .await;
}

/// Starts a process with leases of a few seconds that runs this command. Returns once its waiters
/// are queued for `key`. Twenty of its leases would last longer than a test waits.
async fn waiters<E: Engine>(case: &Case<'_, E>, key: &str, order: &str) -> Node {
    let mut node = node!("lock", url = case.short_url());
    let before = of(case, key).await;
    node.say(order).await;
    assert_eq!(node.line().await, "waits");
    more_than(case, key, &before).await;
    node
}

/// Spawns a task that waits for a lock. Returns once it is queued.
async fn spawn_waiter<E: Engine>(
    case: &Case<'_, E>,
    manager: &LockManager,
    key: &str,
    options: LockOptions,
) -> JoinHandle<Result<LockGuard, lockattr::Error>> {
    let before = of(case, key).await;
    let (manager, owned) = (manager.clone(), key.to_owned());
    let waiter = tokio::spawn(async move { manager.acquire(owned, options).await });
    more_than(case, key, &before).await;
    waiter
}
