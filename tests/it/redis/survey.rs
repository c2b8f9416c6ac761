//! What an operator sees of a Redis: many locks, those of other programs, and those of all masters.

use std::collections::HashSet;
use std::time::Duration;

use lockattr::{Error, HolderId, LockManager, LockOptions};
use lockattr_tests::{Cluster, RedisServer, assert_nothing_left, force_release};

use super::RIGHTS;

const MINUTE: Duration = Duration::from_secs(60);

fn lease() -> LockOptions {
    LockOptions::new().ttl(MINUTE).wait(MINUTE)
}

/// Red without: the pages of `SCAN`, or the batches of `held_locks.lua`.
#[tokio::test]
async fn ten_thousand_held_locks_are_listed_in_a_hundred_requests() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let take = "for i = 1, 10000 do
                  redis.call('SET', 'lock:k' .. i, ARGV[1] .. i, 'PX', 60000)
                  redis.call('SET', 'other:k' .. i, ARGV[1] .. i)
                end";
    let value = format!("{} service=many pid=", "0".repeat(32));
    cli.query::<()>(&["EVAL", take, "0", &value]).await;
    // As a program that does not know lockattr.
    cli.query::<()>(&["SET", "lock:foreign", "mine", "NX", "PX", "60000"]).await;
    cli.query::<()>(&["SET", "lock:forever", "mine", "NX"]).await;
    let manager = LockManager::connect(server.url()).await.unwrap();
    let guard = manager.acquire("ours", lease()).await.unwrap();

    cli.reset_stats().await;
    let held = manager.held_locks().await.unwrap();
    assert_eq!(held.len(), 10_003);
    assert!(held.is_sorted_by_key(|held| &held.key));
    let find = |key: &str| held.iter().find(|held| held.key == key).expect("it is listed");
    let (foreign, forever) = (&find("foreign").holder, &find("forever").holder);
    assert!(foreign.service.is_none() && foreign.process.is_none());
    assert!(foreign.remaining.is_some_and(|left| left <= MINUTE));
    assert_eq!(forever.remaining, None);
    assert_eq!(find("k77").holder.process, Some(77));
    assert_eq!(find("ours").holder.process, Some(std::process::id()));
    let stats = cli.commandstats().await;
    let asked = |command: &str| stats.get(command).copied().unwrap_or_default();
    assert!(asked("evalsha") <= 110, "{stats:?}");
    assert!(asked("scan") <= 40, "{stats:?}");

    assert!(force_release(&manager, "foreign").await.unwrap());
    assert_eq!(cli.value("lock:foreign").await, None);
    guard.release().await.unwrap();
}

/// What another program writes may be no text, and longer than a reply shows.
///
/// Red without: the comparison in `force_release.lua`, `shown` there, or `from_bytes`.
#[tokio::test]
async fn a_lock_of_another_program_is_taken_only_while_it_has_the_value_that_was_seen() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(server.url()).await.unwrap();
    let write = "redis.call('SET', KEYS[1], string.rep(string.char(ARGV[1]), ARGV[2]))";
    let mut before = HolderId::default();
    for (byte, length) in [(b'\xff', 20), (b'\xfe', 20), (b'x', 20), (b'x', 5_000)] {
        let words = ["EVAL", write, "1", "lock:theirs", &byte.to_string(), &length.to_string()];
        cli.query::<redis::Value>(&words).await;
        assert!(!manager.force_release("theirs", before).await.unwrap());
        assert_eq!(cli.query::<usize>(&["STRLEN", "lock:theirs"]).await, length, "it is theirs");
        before = manager.holder("theirs").await.unwrap().expect("it is held").id;
        assert_eq!(manager.held_locks().await.unwrap()[0].holder.id, before);
        assert!(manager.force_release("theirs", before).await.unwrap());
        assert_eq!(cli.value("lock:theirs").await, None);
    }
}

/// Red without: `is_ours` in `survey_all`, or the check of the kind in `survey.lua` and
/// `evict.lua`.
#[tokio::test]
async fn without_a_prefix_only_keys_that_can_be_locks_are_listed() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let url = server.url_with("prefix=");
    let [here, there] = [LockManager::connect(&url).await, LockManager::connect(&url).await];
    let (here, there) = (here.unwrap(), there.unwrap());
    let guard = here.acquire("a", lease()).await.unwrap();
    let waiting = tokio::spawn(async move { there.acquire("a", lease()).await });
    lockattr_tests::eventually("queued", async || here.held_locks().await.unwrap()[0].waiting == 1)
        .await;
    for words in [
        &["HSET", "hash", "f", "v"][..],
        &["RPUSH", "list", "v"],
        &["SADD", "set", "v"],
        &["ZADD", "scores", "1", "v"],
        &["XADD", "stream", "*", "f", "v"],
    ] {
        cli.query::<redis::Value>(words).await;
    }
    let held = here.held_locks().await.unwrap();
    assert_eq!(held.iter().map(|held| held.key.as_str()).collect::<Vec<_>>(), ["a"]);

    for key in ["hash", "scores"] {
        let refused = force_release(&here, key).await.unwrap_err();
        assert!(matches!(&refused, Error::Store { key: named, .. } if named == key));
        assert!(super::describe(&refused).contains("is not a lock"), "{refused:?}");
        assert_eq!(cli.query::<i64>(&["EXISTS", key]).await, 1);
    }
    assert!(matches!(force_release(&here, "lockattr:fence").await, Err(Error::InvalidKey(_))));

    assert!(force_release(&here, "a").await.unwrap());
    let next = waiting.await.unwrap().unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    let lost = guard.release().await;
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    next.ensure_held().unwrap();
    next.release().await.unwrap();
    assert_eq!(here.held_locks().await.unwrap(), []);
}

/// Red without: `with_advice` in `node.rs`.
#[tokio::test]
async fn a_user_who_may_not_list_learns_which_right_is_missing() {
    let server = RedisServer::builder().user("locker", "s3cret", RIGHTS).start().await;
    let manager = LockManager::connect(server.url_as("locker", "s3cret")).await.unwrap();
    let guard = manager.acquire("a", lease()).await.unwrap();
    let refused = manager.held_locks().await.unwrap_err();
    let text = super::describe(&refused);
    assert!(text.contains("lock:*") && text.contains("+scan"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    // For `force_release`, the rights of a program that locks are enough.
    assert!(force_release(&manager, "a").await.unwrap());
    assert!(guard.release().await.is_err());
    assert_nothing_left(&server).await;
}

/// Red without: any of the masters in `Cluster::names`.
#[tokio::test]
async fn locks_on_all_masters_of_a_cluster_are_listed() {
    let cluster = Cluster::shared().await;
    let url = cluster.url_with("prefix=across:");
    let [here, there] = [LockManager::connect(&url).await, LockManager::connect(&url).await];
    let (here, there) = (here.unwrap(), there.unwrap());
    let (mut guards, mut masters) = (Vec::new(), HashSet::new());
    for n in 0..30 {
        let key = format!("k{n:02}");
        masters.insert(cluster.node_of(&format!("across:{key}")).await.addr().to_string());
        guards.push(here.acquire(key, lease()).await.unwrap());
    }
    assert_eq!(masters.len(), 3, "thirty keys are on all of them");
    let held = there.held_locks().await.unwrap();
    let keys: Vec<_> = guards.iter().map(|guard| guard.key().to_owned()).collect();
    assert_eq!(held.iter().map(|held| held.key.clone()).collect::<Vec<_>>(), keys);

    for guard in &guards[..6] {
        assert!(force_release(&there, guard.key()).await.unwrap());
        there.acquire(guard.key(), lease()).await.unwrap().release().await.unwrap();
    }
    let lost = guards.drain(..6).map(lockattr::LockGuard::release);
    for lost in futures_util::future::join_all(lost).await {
        assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert_eq!(here.held_locks().await.unwrap(), []);
}
