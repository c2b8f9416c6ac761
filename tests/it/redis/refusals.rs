//! Redis answers with errors: for a while it refuses all requests.

mod memory;
mod rights;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, LostReason};
use lockattr_tests::{
    RedisServer, assert_nothing_left, capture_events_from, eventually, in_time, skip, with_query,
};
use tracing::Level;

/// Longer than any test here takes. The tests move the clock to what comes later.
const TTL: Duration = Duration::from_secs(600);

/// The heartbeat also meets every refusal. No request is under way for too long when the clock is moved.
const SETTINGS: &str = "heartbeat=300ms&response_timeout=10h&connect_timeout=10h&wait=10h";

async fn manager(server: &RedisServer) -> LockManager {
    connect(&server.url()).await
}

async fn connect(url: &str) -> LockManager {
    LockManager::connect(with_query(url, SETTINGS)).await.unwrap()
}

fn lease(ttl: Duration) -> LockOptions {
    LockOptions::new().ttl(ttl)
}

/// An acquisition that must fail because of the store, and the text of its error.
async fn refused(manager: &LockManager) -> String {
    let ran = AtomicBool::new(false);
    let body = async |_: &Lease| ran.store(true, Ordering::SeqCst);
    let outcome = in_time(manager.with_lock("a", lease(TTL).retry(0), body)).await;
    let error = outcome.expect_err("granted");
    let Error::Store { ref key, .. } = error else { panic!("{error:?}") };
    assert_eq!(key, "a");
    assert!(!ran.load(Ordering::SeqCst), "a body without its lock");
    describe(&error)
}

/// All text of an error, in capitals: the client does not spell the server's words as the server
/// does.
fn describe(error: &Error) -> String {
    super::describe(error).to_uppercase()
}

/// Every refusal, from `refuse` until `mend`, is an outage. Nothing is granted, and the error shows
/// the reason. A held lock stays held up to its deadline, and beyond if the server recovers before
/// that. A release is retried and succeeds long before the lease would have ended.
async fn outlived(
    server: &RedisServer,
    manager: &LockManager,
    words: &[&str],
    refuse: impl AsyncFnOnce(),
    mend: impl AsyncFnOnce(),
) {
    let events = capture_events_from(Level::DEBUG);
    let refused_renewals = || {
        let is_one = |text: &str| text.contains("a renewal got no answer") && text.contains("kept");
        events.all().iter().filter(|event| is_one(&event.text)).count()
    };
    let kept = manager.acquire("kept", lease(TTL)).await.unwrap();
    let let_go = manager.acquire("let go", lease(TTL)).await.unwrap();
    let short = manager.acquire("short", lease(Duration::from_secs(2))).await.unwrap();
    refuse().await;

    let text = refused(manager).await;
    assert!(words.iter().any(|word| text.contains(word)), "{text}");
    let long_wait = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.acquire("a", lease(TTL)).await })
    };
    assert!(matches!(kept.extend(TTL).await, Err(Error::Store { .. })));
    assert!(matches!(let_go.release().await, Err(Error::Store { .. })));
    // More than half of a lease, with a renewal that is refused.
    let before = refused_renewals();
    skip(TTL * 3 / 5);
    eventually("its renewal is refused", async || refused_renewals() > before).await;
    in_time(short.lost()).await;
    let lost = short.ensure_held();
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Expired, .. })), "{lost:?}");
    drop(short);
    assert!(kept.remaining() < TTL / 2);
    kept.ensure_held().expect("unknown, not lost");

    mend().await;
    // It is sent again after a part of the time that is left.
    skip(TTL / 10);
    eventually("it is renewed again", async || kept.remaining() > TTL / 2).await;
    kept.release().await.unwrap();
    long_wait.await.unwrap().expect("waited through it").release().await.unwrap();
    // Before the released lease would have expired.
    assert_nothing_left(server).await;
}

/// A restart with data after a power cut: the lease is in the append-only file, and a renewal that
/// meets a server still loading it is no loss.
#[tokio::test]
async fn while_it_loads_its_data_after_a_crash() {
    let server = RedisServer::builder()
        .appendonly()
        .line("key-load-delay 2000")
        .line("loading-process-events-interval-bytes 1024")
        .start()
        .await;
    let server = Arc::new(server);
    let cli = server.cli().await;
    // Ballast for longer than the test takes, in the part of the file that is read in small steps.
    let fill = "redis.call('SELECT', 1) for n = 1, 50000 do redis.call('SET', n, '') end";
    cli.query::<()>(&["EVAL", fill, "0"]).await;
    cli.query::<()>(&["BGREWRITEAOF"]).await;
    let rewritten = async || cli.info("aof_rewrite_in_progress").await == "0";
    eventually("the file is rewritten", rewritten).await;

    let manager = manager(&server).await;
    let reviving = Cell::new(None);
    let refuse = async || {
        server.kill();
        let dead = server.clone();
        reviving.set(Some(tokio::spawn(async move { dead.revive().await })));
        let loads = async || refused(&manager).await.contains("LOADING");
        eventually("it loads", loads).await;
        let connected = LockManager::connect(server.url()).await;
        assert!(matches!(connected, Err(Error::Store { .. })), "{connected:?}");
    };
    let mend = async || {
        server.cli().await.query::<()>(&["CONFIG", "SET", "key-load-delay", "0"]).await;
        reviving.take().unwrap().await.unwrap();
    };
    outlived(&server, &manager, &["LOADING"], refuse, mend).await;
}

#[tokio::test]
async fn while_it_is_a_replica() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let refuse = async || cli.query(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let mend = async || cli.query(&["REPLICAOF", "NO", "ONE"]).await;
    outlived(&server, &manager(&server).await, &["READONLY"], refuse, mend).await;
}

#[tokio::test]
async fn while_it_is_busy_with_a_script_that_does_not_end() {
    let server = RedisServer::builder().line("busy-reply-threshold 50").start().await;
    let (cli, spinning) = (server.cli().await, server.cli().await);
    let refuse = async || {
        tokio::spawn(async move {
            let endless = ["EVAL", "while true do end", "0"];
            spinning.try_query::<()>(&endless).await
        });
        let busy = async || cli.try_query::<String>(&["PING"]).await.is_err();
        eventually("it is busy", busy).await;
    };
    let mend = async || cli.query(&["SCRIPT", "KILL"]).await;
    outlived(&server, &manager(&server).await, &["BUSY"], refuse, mend).await;
}

/// Even `PING` is refused then. A refusal shows that the server lives, so the connections stay.
#[tokio::test]
async fn while_it_cannot_save() {
    let server = RedisServer::builder().line("save 3600 1000000").start().await;
    let cli = server.cli().await;
    let (_, directory): (String, String) = cli.query(&["CONFIG", "GET", "dir"]).await;
    let in_the_way = std::path::Path::new(&directory).join("dump.rdb");
    let saved = async |status: &str| {
        cli.query::<()>(&["BGSAVE"]).await;
        let ended = async || cli.info("rdb_last_bgsave_status").await == status;
        eventually("it has tried to save", ended).await;
    };
    let manager = manager(&server).await;
    let connections = cli.client_ids().await;
    // Of all commands, among them the heartbeat's.
    let pings = async || {
        let counts: String = cli.query(&["INFO", "commandstats"]).await;
        let of_ping = counts.lines().find(|line| line.starts_with("cmdstat_ping:"));
        let rejected =
            of_ping.and_then(|line| line.split_once("rejected_calls=")?.1.split(',').next());
        rejected.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    let refuse = async || {
        std::fs::create_dir(&in_the_way).unwrap();
        saved("err").await;
        eventually("heartbeats are refused", async || pings().await >= 2).await;
    };
    let mend = async || {
        // A client of an earlier test may have found this server at its port.
        let now = cli.client_ids().await;
        assert!(connections.iter().all(|id| now.contains(id)), "a needless reconnect");
        std::fs::remove_dir(&in_the_way).unwrap();
        saved("ok").await;
    };
    outlived(&server, &manager, &["MISCONF"], refuse, mend).await;
}

/// The old password, after it was changed and its connections were closed.
#[tokio::test]
async fn while_its_password_is_another() {
    let events = capture_events_from(Level::TRACE);
    let server = RedisServer::builder().password("s3cret").start().await;
    let cli = server.cli().await;
    let manager = manager(&server).await;
    let refuse = async || {
        cli.query::<()>(&["CONFIG", "SET", "requirepass", "rotated"]).await;
        assert!(cli.client_kill_all_others().await > 0);
        let text = refused(&manager).await;
        assert!(!text.contains("S3CRET") && !text.contains("ROTATED"), "{text}");
    };
    let mend = async || cli.query(&["CONFIG", "SET", "requirepass", "s3cret"]).await;
    outlived(&server, &manager, &["WRONGPASS"], refuse, mend).await;
    assert!(!events.all().is_empty() && !events.contains("s3cret"), "{:?}", events.all());
}

#[tokio::test]
async fn scripts_forgotten_between_any_two_commands_are_loaded_again_for_batches_as_well() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(server.url_with("connections=1")).await.unwrap();
    let mut guards = Vec::new();
    // More than one script takes.
    for n in 0..150 {
        cli.script_flush().await;
        guards.push(manager.acquire(format!("{n}"), lease(TTL)).await.unwrap());
    }
    for _ in 0..2 {
        cli.script_flush().await;
        skip(TTL * 2 / 5);
        let renewed = async || guards.iter().all(|guard| guard.remaining() > TTL * 4 / 5);
        eventually("all are renewed", renewed).await;
        guards.iter().for_each(|guard| guard.ensure_held().unwrap());
    }
    cli.script_flush().await;
    guards.pop().unwrap().release().await.unwrap();
    cli.script_flush().await;
    drop(guards);
    assert_nothing_left(&server).await;
}
