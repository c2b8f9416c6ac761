//! Large wait queues and calls for many keys: the work of one script run is bounded.

use lockattr_tests::{RedisServer, in_time};

use super::*;

/// The calls made by scripts inside the server, without those that the tests send.
async fn calls(cli: &Cli) -> u64 {
    let inside = [
        "get", "set", "del", "zadd", "zrange", "zrem", "zrank", "exists", "pexpire", "pttl",
        "publish",
    ];
    let stats = cli.commandstats().await;
    inside.iter().filter_map(|name| stats.get(*name)).sum()
}

async fn runs(cli: &Cli) -> u64 {
    cli.commandstats().await.get("evalsha").copied().unwrap_or_default()
}

/// Queue entries of processes that are gone, ahead of all others.
async fn dead_entries(cli: &Cli, count: usize) {
    let fill = "for i = 1, tonumber(ARGV[1]) do \
                redis.call('ZADD', KEYS[1], i, string.format('%032x', i)) end \
                return redis.call('ZCARD', KEYS[1])";
    let queue = "lockattr:line-of:{lock:a}";
    // Counted in the script, because a waiter that asks again removes some of them.
    let queued: usize = cli.query(&["EVAL", fill, "1", queue, &count.to_string()]).await;
    assert!(queued >= count);
}

/// Ten thousand processes died in the queue: the next caller gets in at once, by many short runs.
#[tokio::test]
async fn no_script_run_visits_ten_thousand_dead_entries() {
    let server = RedisServer::start().await;
    let (cli, first) = (server.cli().await, manager(&server, LONG).await);
    dead_entries(&cli, 10_000).await;
    let (calls_before, runs_before) = (calls(&cli).await, runs(&cli).await);
    let once = first.try_acquire("a", LockOptions::new()).await.unwrap();
    let guard = once.expect("all of them are dead");
    let (calls_of, runs_of) = (calls(&cli).await - calls_before, runs(&cli).await - runs_before);
    assert!(calls_of / runs_of < 120, "{calls_of} calls in {runs_of} runs");
    // The same for a release, which hands off to the live waiter behind them.
    let next = manager(&server, LONG).await;
    let waiter = tokio::spawn(async move { next.acquire("a", LockOptions::new()).await.unwrap() });
    wait_until_queued(&cli, 1).await;
    dead_entries(&cli, 10_000).await;
    let (calls_before, runs_before) = (calls(&cli).await, runs(&cli).await);
    guard.release().await.unwrap();
    in_time(waiter).await.unwrap().release().await.unwrap();
    eventually("the queue is gone", async || queued(&cli, "a").await == 0).await;
    let (calls_of, runs_of) = (calls(&cli).await - calls_before, runs(&cli).await - runs_before);
    assert!(calls_of / runs_of < 120, "{calls_of} calls in {runs_of} runs");
    drop(first);
    assert_no_trace(&server).await;
}

#[tokio::test]
async fn a_call_for_a_thousand_keys_costs_a_few_calls_for_each() {
    let server = RedisServer::start().await;
    let (cli, first) = (server.cli().await, manager(&server, LONG).await);
    let next = manager(&server, LONG).await;
    let keys = |count: usize| (0..count).map(|key| format!("key {key}")).collect::<Vec<_>>();
    let before = calls(&cli).await;
    let holder = first.acquire_all(keys(1_000), LockOptions::new()).await.unwrap();
    let free = calls(&cli).await - before;
    assert!(free < 4_000, "{free} calls for a free lock");
    let before = calls(&cli).await;
    let waiter = tokio::spawn({
        let (next, keys) = (next.clone(), keys(1_000));
        async move {
            next.acquire_all(keys, LockOptions::new().retry_delay(Duration::from_secs(3600)))
                .await
                .unwrap()
        }
    });
    eventually("it waits", async || queued(&cli, "key 999").await == 1).await;
    let queued = calls(&cli).await - before;
    assert!(queued < 10_000, "{queued} calls to queue");
    let before = calls(&cli).await;
    holder.release().await.unwrap();
    let guard = in_time(waiter).await.unwrap();
    let handed = calls(&cli).await - before;
    assert!(handed < 10_000, "{handed} calls for the hand-off");
    guard.release().await.unwrap();
    let error = first.acquire_all(keys(1_001), LockOptions::new()).await.unwrap_err();
    assert!(matches!(error, lockattr::Error::InvalidOptions(_)), "{error}");
    drop((first, next));
    assert_no_trace(&server).await;
}

/// A claim for a thousand keys is first in the queues of all but one: a release finds that out
/// once, not once for each key.
#[tokio::test]
async fn a_claim_for_a_thousand_keys_behind_another_costs_a_few_calls_for_each() {
    let server = RedisServer::start().await;
    let (cli, first) = (server.cli().await, manager(&server, LONG).await);
    let keys = || (0..1_000).map(|key| format!("key {key}")).collect::<Vec<_>>();
    let holder = first.acquire_all(keys(), LockOptions::new()).await.unwrap();
    let mut waiters = Vec::new();
    for (place, contended) in [vec!["key 500".to_owned()], keys()].into_iter().enumerate() {
        let next = manager(&server, &format!("{LONG}&retry_delay=1h")).await;
        waiters.push(tokio::spawn(async move {
            next.acquire_all(contended, LockOptions::new()).await.unwrap()
        }));
        let waits = async || queued(&cli, "key 500").await == place + 1;
        eventually("it waits", waits).await;
    }
    let before = calls(&cli).await;
    holder.release().await.unwrap();
    let all = waiters.pop().unwrap();
    let one = in_time(waiters.pop().unwrap()).await.unwrap();
    let released = calls(&cli).await - before;
    assert!(released < 15_000, "{released} calls to serve one of them");
    one.release().await.unwrap();
    in_time(all).await.unwrap().release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}
