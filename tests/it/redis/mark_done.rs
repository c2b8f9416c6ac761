//! A key that is done: what the server holds, however many claims wait, and answers that are lost.

use std::time::Duration;

use lockattr::store::{RedisStore, ReleaseOutcome};
use lockattr_tests::{Cli, Fault, Proxy, RedisServer, assert_nothing_left, eventually, for_store};

use crate::marks::{DAY, Process, asks_again_now};

const MINUTE: Duration = Duration::from_secs(60);

fn process(url: &str) -> Process {
    Process::on(RedisStore::open(&for_store(url)).unwrap())
}

/// Whether the key ends a day from now.
async fn lasts_a_day(cli: &Cli) -> bool {
    let left = Duration::from_millis(cli.pttl("lock:nightly").await.try_into().unwrap_or(0));
    left <= DAY && left > DAY - MINUTE
}

/// Red without: the word in `mark_done.lua`, or its `PX`.
#[tokio::test]
async fn the_value_of_a_done_lock_ends_with_one_more_word_and_the_key_ends_with_the_period() {
    let server = RedisServer::start().await;
    let (cli, process) = (server.cli().await, process(&server.url()));
    let claim = process.holder_of("nightly").await;
    assert_eq!(cli.value("lock:nightly").await.as_deref(), Some(claim.value()));
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    let marked = format!("{} done=1", claim.value());
    assert_eq!(cli.value("lock:nightly").await, Some(marked));
    assert!(lasts_a_day(&cli).await);
    assert_eq!(cli.keys("*").await, ["lock:nightly", "lockattr:fence"]);
}

/// A lock that claims wait for has its mark of the queue before the value, and its end there.
///
/// Red without: `set_marked` in `mark_done.lua`; the others of the queue are overtaken then.
#[tokio::test]
async fn a_done_lock_that_claims_wait_for_keeps_its_queue_until_they_have_left() {
    let server = RedisServer::start().await;
    let (cli, here, there) = (server.cli().await, process(&server.url()), process(&server.url()));
    let (claim, waiter) = (here.holder_of("nightly").await, there.claim(&["nightly"]));
    let notifications = there.enqueue(&waiter).await;
    assert_eq!(here.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    asks_again_now(&notifications).await;

    let value = cli.value("lock:nightly").await.unwrap();
    let (mark, rest) = value.split_at(value.find(claim.value()).expect("its value"));
    assert!(mark.starts_with("queued=1 until=") && mark.contains(" kept="), "{value}");
    assert_eq!(rest, format!("{} done=1", claim.value()));
    assert!(lasts_a_day(&cli).await);
    assert!(there.refused(&waiter).await.expect("held").done);

    assert_eq!(there.release(&waiter).await, ReleaseOutcome::NotHeld);
    let marked = format!("{} done=1", claim.value());
    assert_eq!(cli.value("lock:nightly").await, Some(marked));
    assert!(lasts_a_day(&cli).await);
    assert_eq!(cli.keys("*").await, ["lock:nightly", "lockattr:fence"]);
}

/// One run of the script notifies a hundred waiters.
///
/// Red without: the loop in `mark_done.rs`, or `after` in the script.
#[tokio::test]
async fn all_waiters_are_notified_however_many_there_are() {
    let server = RedisServer::start().await;
    let process = process(&server.url());
    let claim = process.holder_of("nightly").await;
    let mut waiters = Vec::new();
    for _ in 0..350 {
        let waiter = process.claim(&["nightly"]);
        waiters.push((process.enqueue(&waiter).await, waiter));
    }
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    for (notifications, _) in &waiters {
        asks_again_now(notifications).await;
    }
    // A run that finds exactly a hundred of them looks once more.
    let (left, rest) = waiters.split_at(250);
    for (_, waiter) in left {
        process.release(waiter).await;
    }
    assert_eq!(rest.len(), 100);
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    asks_again_now(&rest[99].0).await;
}

/// Red without: `holder ~= done` in `mark_done.lua`.
#[tokio::test]
async fn a_mark_whose_answer_is_lost_is_repeated_and_its_period_stays() {
    let server = RedisServer::start().await;
    let (cli, proxy) = (server.cli().await, Proxy::start(server.addr()).await);
    let process = process(&server.url_through(&proxy));
    let claim = process.holder_of("nightly").await;
    // The script is loaded by its first call.
    let other = process.holder_of("other").await;
    process.mark(&other, DAY).await.unwrap();

    proxy.next("mark_done", Fault::CutBefore);
    process.mark(&claim, DAY).await.expect_err("unknown");
    assert_eq!(cli.value("lock:nightly").await.as_deref(), Some(claim.value()));
    proxy.next("mark_done", Fault::CutAfter);
    process.mark(&claim, DAY).await.expect_err("unknown");
    let marked = format!("{} done=1", claim.value());
    assert_eq!(cli.value("lock:nightly").await, Some(marked));
    assert_eq!(process.mark(&claim, 2 * DAY).await.unwrap(), ReleaseOutcome::Released);
    assert!(lasts_a_day(&cli).await, "the period began again");
}

/// A full server refuses what takes memory, unless a command before it in the script does not.
///
/// Red without: `PEXPIRE` in `mark_done.lua`.
#[tokio::test]
async fn out_of_memory_a_key_is_marked() {
    let server = RedisServer::start().await;
    let (cli, process) = (server.cli().await, process(&server.url()));
    let (alone, contended) = (process.holder_of("alone").await, process.holder_of("nightly").await);
    let waiter = process.claim(&["nightly"]);
    let notifications = process.enqueue(&waiter).await;
    cli.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert_eq!(process.mark(&alone, DAY).await.unwrap(), ReleaseOutcome::Released);
    assert_eq!(process.mark(&contended, DAY).await.unwrap(), ReleaseOutcome::Released);
    asks_again_now(&notifications).await;
    assert!(process.holder("alone").await.unwrap().done);
    assert!(process.holder("nightly").await.unwrap().done);
}

/// Red without: `Effect::Extend` in `mark_done.rs`; the mark would count on the master alone.
#[tokio::test]
async fn with_replicas_a_mark_counts_once_they_have_it() {
    let master = RedisServer::start().await;
    let replica = RedisServer::builder().replica_of(&master).start().await;
    replica.linked().await;
    let (cli, copy) = (master.cli().await, replica.cli().await);
    // The replica counts once it has answered, which may take a second.
    cli.query::<()>(&["SET", "lockattr:test:fence", "replicated"]).await;
    assert_eq!(cli.query::<usize>(&["WAIT", "1", "100000"]).await, 1);
    let patient = process(&master.url_with("replicas=1"));
    let claim = patient.holder_of("nightly").await;
    assert_eq!(patient.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    assert_eq!(copy.value("lock:nightly").await, Some(format!("{} done=1", claim.value())));

    let late = patient.holder_of("late").await;
    replica.kill();
    let hasty = process(&master.url_with("replicas=1&response_timeout=1s"));
    eventually("it is refused for the replica", async || {
        let refused = hasty.mark(&late, DAY).await.expect_err("only the master has it");
        // On a busy machine the master itself may be late.
        refused.to_string().contains("replica")
    })
    .await;
}

/// A process of a version without marks sends the commands that it always did.
#[tokio::test]
async fn commands_of_a_process_that_knows_no_marks_leave_a_done_key_alone() {
    let server = RedisServer::start().await;
    let (cli, process) = (server.cli().await, process(&server.url()));
    let claim = process.holder_of("nightly").await;
    process.mark(&claim, DAY).await.unwrap();
    let taken: Option<String> =
        cli.query(&["SET", "lock:nightly", "0 service=old", "NX", "PX", "1000"]).await;
    assert_eq!(taken, None);
    let delete = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";
    let deleted: i64 = cli.query(&["EVAL", delete, "1", "lock:nightly", claim.value()]).await;
    assert_eq!(deleted, 0);
    assert!(process.holder("nightly").await.unwrap().done);
    assert!(process.force_release("nightly").await);
    let is_free = async || process.holder("nightly").await.is_none();
    eventually("it is free", is_free).await;
    assert_nothing_left(&server).await;
}
