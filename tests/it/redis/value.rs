//! What a lock looks like in Redis, and how it coexists with other programs' locks.

use std::time::Duration;

use lockattr::LostReason::Taken;
use lockattr::{Error, LockManager, LockOptions, Release};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, in_time, skip};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_lock_is_a_plain_string_with_a_ttl_under_prefix_and_key() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::builder().url(server.url()).service("order desk").connect();
    let manager = manager.await.unwrap();
    let options = LockOptions::new().ttl(60 * SECOND).function("shop::sell");
    let guard = manager.acquire("product:42", options).await.unwrap();

    assert_eq!(cli.query::<String>(&["TYPE", "lock:product:42"]).await, "string");
    assert!((1..=60_000).contains(&cli.pttl("lock:product:42").await));
    let value = cli.value("lock:product:42").await.unwrap();
    let (token, label) = value.split_once(' ').unwrap();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{value}");
    assert!(label.contains("service=order%20desk"), "{value}");
    assert!(label.contains(&format!("pid={}", std::process::id())), "{value}");
    assert!(label.contains("function=shop::sell"), "{value}");

    let holder = manager.holder("product:42").await.unwrap().unwrap();
    assert_eq!(holder.service.as_deref(), Some("order desk"));
    assert_eq!(holder.function.as_deref(), Some("shop::sell"));
    assert!(holder.since.unwrap().elapsed().unwrap() < 60 * SECOND);

    guard.release().await.unwrap();
    let mut keys = cli.keys("*").await;
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert!(keys.pop().unwrap().contains("fence"));
}

#[tokio::test]
async fn the_prefix_is_any_other_or_none() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    for (prefix, name) in [("shop:", "shop:a"), ("", "a")] {
        let url = server.url_with(&format!("prefix={prefix}"));
        let manager = LockManager::connect(&url).await.unwrap();
        let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
        assert!(cli.value(name).await.is_some(), "{name}");
        guard.release().await.unwrap();
    }
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_lock_of_another_program_keeps_us_out_and_ours_keeps_it_out() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();

    cli.query::<String>(&["SET", "lock:a", "some-uuid", "NX", "PX", "60000"]).await;
    let once = LockOptions::new().wait(Duration::ZERO);
    let error = manager.acquire("a", once.clone()).await.unwrap_err();
    let Error::Contended { holder: Some(holder), .. } = error else { panic!("{error:?}") };
    assert_eq!((holder.service, holder.process), (None, None));
    assert!(holder.remaining.unwrap() > 50 * SECOND);
    assert_eq!(cli.value("lock:a").await.as_deref(), Some("some-uuid"));

    // Not even a string, and without an end.
    cli.query::<i64>(&["HSET", "lock:b", "field", "value"]).await;
    let error = manager.acquire("b", once).await.unwrap_err();
    assert!(matches!(error, Error::Contended { .. }), "{error:?}");

    let guard = manager.acquire("c", LockOptions::new()).await.unwrap();
    let refused: Option<String> = cli.query(&["SET", "lock:c", "x", "NX", "PX", "10"]).await;
    assert_eq!(refused, None);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_deleted_and_a_stolen_lock_are_lost_and_the_thief_is_left_alone() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    // A renewal reports the loss, not the deadline.
    let ttl = 3_600 * SECOND;
    let options = LockOptions::new().ttl(ttl);

    let deleted = manager.acquire("deleted", options.clone()).await.unwrap();
    cli.query::<i64>(&["DEL", "lock:deleted"]).await;
    skip(ttl / 2);
    in_time(deleted.lost()).await;
    // By the renewal that found out, not by the deadline.
    assert!(matches!(deleted.release().await, Err(Error::Lost { reason: Taken, .. })));

    let stolen = manager.acquire("stolen", options.clone()).await.unwrap();
    let live = manager.acquire("live", options).await.unwrap();
    cli.query::<String>(&["SET", "lock:stolen", "thief", "PX", "3600000"]).await;
    skip(ttl / 2);
    in_time(stolen.lost()).await;
    assert!(matches!(stolen.release().await, Err(Error::Lost { reason: Taken, .. })));
    assert_eq!(cli.value("lock:stolen").await.as_deref(), Some("thief"));
    live.ensure_held().unwrap();
    live.release().await.unwrap();
}

#[tokio::test]
async fn a_release_in_the_background_succeeds_and_keeps_its_place() {
    let server = RedisServer::start().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let options = LockOptions::new().release(Release::Background);
    for _ in 0..200 {
        // One attempt each: if the release came after the next acquire, that would be refused.
        let once = options.clone().wait(Duration::ZERO);
        manager.with_lock("a", once, async |_| ()).await.unwrap();
    }
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn ten_thousand_dropped_guards_are_gone_soon() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let long = LockOptions::new().ttl(Duration::from_secs(600));
    let mut guards = Vec::new();
    for n in 0..10_000 {
        guards.push(manager.acquire(format!("k{n}"), long.clone()).await.unwrap());
    }
    drop(guards);
    // By the count of keys, not one by one: the fencing counter stays.
    eventually("all dropped guards are released", async || {
        cli.query::<i64>(&["DBSIZE"]).await == 1
    })
    .await;
}

#[tokio::test]
async fn a_forgotten_script_is_loaded_again() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    cli.script_flush().await;
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    cli.script_flush().await;
    guard.extend(60 * SECOND).await.unwrap();
    cli.script_flush().await;
    guard.release().await.unwrap();
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn nested_calls_send_no_command() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let before = cli.commandstats().await;
    let nested = async {
        for _ in 0..100 {
            manager.with_lock("a", LockOptions::new(), async |_| ()).await.unwrap();
        }
    };
    guard.scope(nested).await;
    let after = cli.commandstats().await;
    assert_eq!(before.get("evalsha"), after.get("evalsha"));
}
