//! Ten thousand leases, renewed and released by one task.

use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions, LostReason};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, in_time};
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::support::Scripted;

const LEASES: usize = 10_000;

const SECOND: Duration = Duration::from_secs(1);
async fn acquire_all(manager: &LockManager, ttl: Duration) -> Vec<LockGuard> {
    let options = LockOptions::new().ttl(ttl);
    let mut guards = Vec::with_capacity(LEASES);
    for n in 0..LEASES {
        guards.push(manager.acquire(n.to_string(), options.clone()).await.unwrap());
    }
    guards
}

fn is_taken(guard: &LockGuard) -> bool {
    matches!(guard.ensure_held(), Err(Error::Lost { reason: LostReason::Taken, .. }))
}

#[tokio::test]
async fn of_ten_thousand_leases_stolen_and_deleted_ones_are_lost_and_the_others_renewed() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, LockManager::connect(&server.url()).await.unwrap());
    let warm = manager.acquire("0", LockOptions::new()).await.unwrap();
    let tasks = Handle::current().metrics().num_alive_tasks();
    warm.release().await.unwrap();
    let guards = acquire_all(&manager, 30 * SECOND).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "a task for a lease");

    let (stolen, deleted) = (&guards[17], &guards[4711]);
    cli.query::<String>(&["SET", "lock:17", "theirs", "PX", "600000"]).await;
    cli.query::<i64>(&["DEL", "lock:4711"]).await;
    for lost in [stolen, deleted] {
        in_time(lost.lost()).await;
        assert!(is_taken(lost));
    }
    cli.reset_stats().await;
    // Three rounds, a third of the TTL apart, of a hundred commands each.
    let rounds = async || cli.commandstats().await.get("evalsha").is_some_and(|n| *n > 300);
    eventually("three rounds of renewals", rounds).await;
    let lost: Vec<_> = guards.iter().filter(|guard| guard.ensure_held().is_err()).collect();
    let lost: Vec<_> = lost.iter().map(|guard| guard.key()).collect();
    assert_eq!(lost, ["17", "4711"]);

    drop(guards);
    cli.query::<i64>(&["DEL", "lock:17"]).await;
    assert_nothing_left(&server).await;
}

/// However their deadlines are spread: a batch also renews the leases that are nearly due.
#[tokio::test(start_paused = true)]
async fn ten_thousand_leases_are_renewed_in_few_batches() {
    let store = Scripted::new();
    let manager = store.manager();
    let options = LockOptions::new().ttl(9 * SECOND);
    let mut guards = Vec::with_capacity(LEASES);
    for n in 0..LEASES {
        guards.push(manager.acquire(n.to_string(), options.clone()).await.unwrap());
        if n % 10 == 0 {
            // Spreads the acquisitions over the time between two renewals.
            sleep(Duration::from_millis(3)).await;
        }
    }
    let before = store.calls().renewals.len();
    sleep(60 * SECOND).await;
    let renewals = store.calls().renewals.split_off(before);
    let (batches, leases) = (renewals.len(), renewals.iter().sum::<usize>());
    assert!(batches <= 60 * 5, "{batches} batches in a minute");
    // Every three seconds, or a little earlier.
    assert!((19 * LEASES..=23 * LEASES).contains(&leases), "{leases} renewals in a minute");
    assert!(guards.iter().all(|guard| guard.ensure_held().is_ok()));
}
