//! Fencing tokens only grow: across processes, flushes and restarts.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, Notification, RedisStore, ReleaseRequest,
    Sharing, Store, Subscriber, Waiting,
};
use lockattr::{FencingToken, LockManager, LockOptions};
use lockattr_tests::{Node, RedisServer, assert_nothing_left, for_store, node, with_query};

/// The tokens of `count` acquisitions by each node, in the order of the grants.
async fn tokens(nodes: &mut [Node], count: usize) -> Vec<u64> {
    for node in nodes.iter_mut() {
        node.say(&format!("fence a {count}")).await;
    }
    let mut tokens = Vec::new();
    for node in nodes {
        let mut own: Vec<u64> = Vec::new();
        for _ in 0..count {
            own.push(node.line().await.parse().expect("a token"));
        }
        // The node's own acquisitions came one after the other.
        assert!(own.is_sorted_by(|earlier, later| earlier < later), "{own:?}");
        tokens.extend(own);
    }
    tokens.sort_unstable();
    tokens
}

#[tokio::test]
async fn a_thousand_acquisitions_of_four_processes_across_a_flush_and_a_restart_without_data() {
    let server = RedisServer::start().await;
    let mut nodes: Vec<_> = (0..4).map(|_| node!("lock", url = server.url())).collect();

    let first = tokens(&mut nodes, 100).await;
    server.cli().await.flushall().await;
    let second = tokens(&mut nodes, 100).await;
    server.restart().await;
    assert!(server.cli().await.keys("*").await.is_empty(), "the server saves no data");
    let third = tokens(&mut nodes, 50).await;

    let all: Vec<_> = first.iter().chain(&second).chain(&third).copied().collect();
    assert_eq!(all.len(), 1000);
    // Each phase is sorted, so this checks the order of the phases, and that no number occurs
    // twice.
    assert!(all.is_sorted_by(|earlier, later| earlier < later));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_token_is_the_servers_clock_or_one_more_than_the_last() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    // A counter far ahead of the clock, as after the clock was set back.
    let ahead: u64 = 1 << 52;
    cli.query::<String>(&["SET", "lockattr:fence", &ahead.to_string()]).await;
    for step in 1..=3 {
        let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
        assert_eq!(guard.fencing_token().get() >> 10, ahead + step);
        assert!(i64::from(guard.fencing_token()) > 0);
        guard.release().await.unwrap();
    }
    // Digits, not an exponent: Lua would round.
    assert_eq!(cli.value("lockattr:fence").await.unwrap(), (ahead + 3).to_string());
}

/// What `which-store.md` says: a bare `INCR` trusts the counter until the next heartbeat.
#[tokio::test]
async fn an_older_counter_under_a_connection_counts_until_the_connection_is_checked() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager =
        async || LockManager::connect(&with_query(&server.url(), "heartbeat=1h")).await.unwrap();
    let token = async |manager: &LockManager| {
        let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
        let token = guard.fencing_token();
        guard.release().await.unwrap();
        token
    };
    let (busy, idle) = (manager().await, manager().await);
    token(&idle).await;
    let older = ["COPY", "lockattr:fence", "lockattr:fence", "DB", "1"];
    assert_eq!(cli.query::<i64>(&older).await, 1);
    let mut last = token(&busy).await;
    for _ in 0..3 {
        last = token(&busy).await;
    }
    cli.query::<String>(&["SWAPDB", "0", "1"]).await;

    // It has not seen the greater tokens, and a number just above its own is plausible.
    assert!(token(&idle).await < last, "a script counted");
    // The process that has seen them does not go back.
    assert!(token(&busy).await > last);
    // A lost counter is noticed by everyone.
    let last = token(&busy).await;
    cli.flushall().await;
    assert!(token(&idle).await > last);
    assert_nothing_left(&server).await;
}

/// Lua counts in doubles, which can hold every whole number up to 2⁵³ and no odd number beyond.
#[tokio::test]
async fn a_token_in_the_upper_half_of_the_range_of_a_double_is_issued_once() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let store = RedisStore::open(&for_store(&server.url())).unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    store.subscribe(&subscriber);
    let claim = || {
        let key = LockKey::new("lock:", "a").unwrap();
        Arc::new(Claim::of(&subscriber, key, [], Sharing::Exclusive, "service=fencing"))
    };
    let [first, next, last, after] = [(); 4].map(|()| claim());
    let ttl = Duration::from_secs(3_600);
    store.acquire(&AcquireRequest::new(first, ttl)).await.unwrap();
    for waits in [&next, &last] {
        let request = AcquireRequest::new(waits.clone(), ttl).waiting(Waiting::Queued);
        assert!(matches!(store.acquire(&request).await, Ok(AcquireOutcome::Held { .. })));
    }
    let counter: u64 = 1 << 52;
    cli.query::<String>(&["SET", "lockattr:fence", &counter.to_string()]).await;
    // The first lease ends, and the head asks again while another process waits.
    cli.end_lease("lock:a", "").await;
    let request = AcquireRequest::new(next.clone(), ttl).waiting(Waiting::Queued);
    let fencing = FencingToken::from_counter(counter + 1);
    let acquired = store.acquire(&request).await.unwrap();
    assert_eq!(acquired, AcquireOutcome::Acquired { fencing, contended: true });
    let expected = subscriber.subscribe(last.token());
    store.release(&[ReleaseRequest::new(next)]).await.remove(0).unwrap();
    let Notification::Granted(grant) = expected.next().await else { panic!("granted") };
    assert_eq!(grant.fencing, FencingToken::from_counter(counter + 2));
    store.release(&[ReleaseRequest::new(last)]).await.remove(0).unwrap();

    // At the limit of a double, no number is issued twice: none is issued at all.
    let end = (1_u64 << 53) - 2;
    cli.query::<String>(&["SET", "lockattr:fence", &end.to_string()]).await;
    let fencing = FencingToken::from_counter(end + 1);
    let acquired = store.acquire(&AcquireRequest::new(after.clone(), ttl)).await.unwrap();
    assert_eq!(acquired, AcquireOutcome::Acquired { fencing, contended: false });
    store.release(&[ReleaseRequest::new(after.clone())]).await.remove(0).unwrap();
    for _ in 0..3 {
        let error = store.acquire(&AcquireRequest::new(after.clone(), ttl)).await.unwrap_err();
        assert!(error.to_string().contains("unexpected reply"), "{error}");
        store.release(&[ReleaseRequest::new(after.clone())]).await.remove(0).unwrap();
    }
}

#[tokio::test]
async fn a_counter_that_cannot_be_read_locks_nothing() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    cli.query::<i64>(&["LPUSH", "lockattr:fence", "not a number"]).await;
    let error = manager.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
    assert!(matches!(error, lockattr::Error::Store { .. }), "{error:?}");
    assert_eq!(cli.value("lock:a").await, None);
}

#[tokio::test]
async fn names_reserved_by_the_store_cannot_be_locked() {
    let server = RedisServer::start().await;
    let manager = LockManager::builder().url(server.url()).prefix("").connect().await.unwrap();
    for name in ["lockattr:fence", "lockattr:line:{a}", "lockattr:line-of:{a}"] {
        let error = manager.acquire(name, LockOptions::new()).await.unwrap_err();
        assert!(matches!(error, lockattr::Error::InvalidKey(_)), "{error:?}");
        assert!(error.to_string().contains("reserves names"), "{error}");
    }
    assert_nothing_left(&server).await;
}
