//! Many locks over all nodes, and the cost of a hand-off.

use std::collections::VecDeque;

use lockattr::{Error, LostReason};
use lockattr_tests::Cli;
use tokio::time::Instant;

use super::*;

#[tokio::test]
async fn a_thousand_leases_over_all_nodes_are_renewed() {
    let cluster = Cluster::start().await;
    let manager = LockManager::connect(cluster.url_with("ttl=30s")).await.unwrap();
    let mut guards = Vec::new();
    for number in 0..1_000 {
        guards.push(acquire(&manager, &format!("k{number}")).await);
    }
    let end = |guard: &LockGuard| Instant::now() + guard.remaining();
    let first: Vec<_> = guards.iter().map(end).collect();
    for (guard, first) in guards.iter().zip(first) {
        let renewed = async || end(guard) > first + Duration::from_secs(1);
        eventually("it is renewed", renewed).await;
        assert!(guard.ensure_held().is_ok(), "{} was lost", guard.key());
    }
    drop((guards, manager));
    assert_no_trace(&cluster).await;
}

/// How often the server has run a command, be it in a script.
async fn calls(cli: &Cli, command: &str) -> u64 {
    cli.commandstats().await.get(command).copied().unwrap_or_default()
}

/// How long a claim waits before it asks again: a third of the time that its entry lasts without a request.
const RECHECK: Duration = Duration::from_secs(5);

/// How long a process remembers, from its own request on, that others wait for a lock. Then it tries first to
/// release the lock as if no process waited, which is one command in vain.
const REMEMBERED: Duration = Duration::from_millis(300);

/// One that joins the queue, and one that releases the lock to the next in it. Whatever else is sent is due to
/// the time that the machine took.
#[tokio::test]
async fn a_hand_off_between_processes_costs_two_commands_here_too() {
    let cluster = Cluster::start().await;
    let cli = cluster.node_of("lock:a").await.cli().await;
    let connect = async || LockManager::connect(cluster.url_with("retry_delay=1h")).await.unwrap();
    let managers = [connect().await, connect().await, connect().await];
    let mut holder = acquire(&managers[0], "a").await;
    let (began, mut joined, mut waiting) = (Instant::now(), Instant::now(), VecDeque::new());
    for place in [1, 2] {
        waiting.push_back((Instant::now(), waiter(&cluster, &managers[place], "a", place).await));
    }
    // The first holder did not wait, so its release is not counted.
    let (hand_offs, mut forgot, mut counts) = (60, 0, Vec::new());
    for round in 0..=hand_offs {
        let notified = calls(&cli, "spublish").await;
        holder.release().await.unwrap();
        forgot += u64::from(round > 0 && joined.elapsed() >= REMEMBERED);
        let (since, next) = waiting.pop_front().unwrap();
        (joined, holder) = (since, granted(next).await);
        waiting.push_back((Instant::now(), waiter(&cluster, &managers[round % 3], "a", 2).await));
        assert!(calls(&cli, "spublish").await > notified, "by a timer");
        counts.push(calls(&cli, "evalsha").await);
    }
    let rechecks = 3 * (began.elapsed().as_secs() / RECHECK.as_secs());
    let (commands, least) = (counts[hand_offs] - counts[0], 2 * hand_offs as u64);
    assert!(
        (least..=least + forgot + rechecks).contains(&commands),
        "{commands}, of which {forgot} and {rechecks} may be due to a slow machine"
    );
    drop(holder);
    for (_, waiter) in waiting {
        drop(granted(waiter).await);
    }
    drop(managers);
    assert_no_trace(&cluster).await;
}

/// One node loses all data: its locks are lost, and no others.
#[tokio::test]
async fn a_node_that_forgets_loses_its_own_locks_only() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster).await;
    let other = keys_beside(&cluster, "a", false, 1).await.remove(0);
    let (here, there) = (acquire(&manager, "a").await, acquire(&manager, &other).await);
    let before = here.fencing_token();
    cluster.node_of("lock:a").await.cli().await.flushall().await;
    let lost = here.extend(LONGER).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { reason: LostReason::Taken, .. }), "{lost:?}");
    in_time(here.lost()).await;
    there.extend(LONGER).await.unwrap();
    let next = acquire(&super::manager(&cluster).await, "a").await;
    assert!(next.fencing_token() > before);
    next.release().await.unwrap();
    there.release().await.unwrap();
    drop((here, manager));
    assert_no_trace(&cluster).await;
}
