//! At most `max_sessions` connections for claims that wait: the others wait in the process.

use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions};
use lockattr_tests::{Engine, PostgresServer, eventually, in_time};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::Client;

use super::{Database, acquire, is_free, manager};

/// Counts the sessions of all stores.
async fn sessions(client: &Client) -> i64 {
    let count = "select count(*) from pg_stat_activity where application_name like 'lockattr%'";
    client.query_one(count, &[]).await.unwrap().get(0)
}

/// Whether a session waits in the server's queue for this key.
async fn waits(client: &Client, key: &str) -> bool {
    let exists = "select exists (select from pg_locks
        where locktype = 'advisory' and objsubid = 1 and not granted
            and classid::bigint << 32 | objid::bigint = hashtextextended($1, 0))";
    client.query_one(exists, &[&format!("lock:{key}")]).await.unwrap().get(0)
}

fn spawn_acquire(manager: &LockManager, key: &str) -> tokio::task::JoinHandle<LockGuard> {
    let (manager, key) = (manager.clone(), key.to_owned());
    tokio::spawn(async move {
        let acquired = manager.acquire(&key, LockOptions::new()).await;
        acquired.unwrap_or_else(|error| panic!("{key}: {error}"))
    })
}

/// Red without: the places in `Sessions`, or their wait in `wait_for_place`.
#[tokio::test]
async fn waiters_for_many_keys_leave_connections_for_others_and_are_all_granted() {
    const KEYS: usize = 150;
    let server = PostgresServer::with(&["max_connections = 100"]).await;
    let url = server.url_with("lock=session");
    let (holder, waiter) = (manager(&url).await, manager(&url).await);
    let mut held = Vec::new();
    for nth in 0..KEYS {
        held.push(acquire(&holder, &format!("k{nth}")).await);
    }
    let mut granted = JoinSet::new();
    for nth in 0..KEYS {
        let waiter = waiter.clone();
        granted.spawn(async move {
            acquire(&waiter, &format!("k{nth}")).await.release().await.unwrap();
        });
    }
    let client = server.client().await;
    let at_the_server = async || {
        let count = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
        client.query_one(count, &[]).await.unwrap().get::<_, i64>(0) == 16
    };
    eventually("16 wait at the server", at_the_server).await;
    let all = async || sessions(&client).await == 2 + 2 + 16;
    eventually("both have two shared sessions", all).await;
    // Other clients still connect.
    let others = futures_util::future::join_all((0..20).map(|_| server.client())).await;
    drop(others);
    let mut most = 0;
    let all = async {
        for guard in held {
            guard.release().await.unwrap();
        }
        while granted.join_next().await.is_some_and(|granted| granted.is_ok()) {
            most = most.max(sessions(&client).await);
        }
    };
    in_time(all).await;
    assert!(granted.is_empty(), "one was not granted");
    // The server still lists sessions that their client has just closed.
    assert!((4..60).contains(&most), "{most} sessions");
    let none = async || {
        let left = "select count(*) from pg_locks where locktype = 'advisory'";
        client.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0
    };
    eventually("no lock is left", none).await;
}

/// When one waiter ends, the next in order gets its connection.
///
/// Red without: `recycle`, or the order of `Sessions::place`.
#[tokio::test]
async fn waiters_get_the_connection_in_their_order() {
    let database = Database::new().await;
    let holder = database.sessions("").await;
    let waiter = database.sessions("max_sessions=1&connections=1").await;
    let client = database.client().await;
    let keys = ["a", "b", "c", "d"];
    let mut held = Vec::new();
    for key in keys {
        held.push(acquire(&holder, key).await);
    }
    // Over one connection, their requests are answered in order.
    let tasks: Vec<_> = keys.map(|key| spawn_acquire(&waiter, key)).into();
    for (key, task) in keys.into_iter().zip(tasks) {
        eventually(key, async || waits(&client, key).await).await;
        database.waiting(1).await;
        task.abort();
    }
    for guard in held {
        guard.release().await.unwrap();
    }
    database.nobody_locks().await;
    for key in keys {
        assert!(is_free(&waiter, key).await, "{key}");
    }
}

/// The holder of the only place waits for another key, which becomes free: it must get it, although
/// only its own release could give it a place.
///
/// Red without: `try_meanwhile`.
#[tokio::test]
async fn a_holder_of_the_last_connection_gets_a_second_lock_when_it_is_free() {
    let database = Database::new().await;
    let holder = database.sessions("").await;
    let waiter = database.sessions("max_sessions=1&connections=1&retry_delay=20ms").await;
    let (one, two) = (acquire(&holder, "one").await, acquire(&holder, "two").await);
    let first = spawn_acquire(&waiter, "one");
    database.waiting(1).await;
    one.release().await.unwrap();
    let first = in_time(first).await.unwrap();
    let second = spawn_acquire(&waiter, "two");
    tokio::task::yield_now().await;
    // Over one connection, the first request for the second lock is answered before this one.
    acquire(&waiter, "three").await.release().await.unwrap();
    two.release().await.unwrap();
    let second = in_time(second).await.unwrap();
    assert_eq!(database.locks(true).await, 2);
    assert!(!is_free(&holder, "two").await);
    second.release().await.unwrap();
    first.release().await.unwrap();
    database.nobody_locks().await;
}

#[tokio::test]
async fn a_claim_that_gives_up_before_it_has_a_place_leaves_nothing() {
    let database = Database::new().await;
    let holder = database.sessions("").await;
    let waiter = database.sessions("max_sessions=1&retry_delay=1ms").await;
    let (one, two) = (acquire(&holder, "one").await, acquire(&holder, "two").await);
    let first = spawn_acquire(&waiter, "one");
    database.waiting(1).await;
    for micros in (0..30).map(|nth| nth * 300) {
        let asks =
            timeout(Duration::from_micros(micros), waiter.acquire("two", LockOptions::new()));
        assert!(asks.await.is_err(), "granted twice");
    }
    two.release().await.unwrap();
    let free = async || database.locks(true).await == 1;
    eventually("only the other lock is left", free).await;
    assert!(is_free(&holder, "two").await);
    one.release().await.unwrap();
    in_time(first).await.unwrap().release().await.unwrap();
    database.nobody_locks().await;
}

/// Red without: `take_max_sessions`, or its range.
#[tokio::test]
async fn the_setting_is_checked_and_belongs_to_session_locks() {
    for (query, says) in [
        ("lock=session&max_sessions=0", "`max_sessions` must be 1 to 10000"),
        ("lock=session&max_sessions=many", "not a whole number"),
        ("max_sessions=4", "`max_sessions` with `lock=session`"),
    ] {
        let built = LockManager::builder().url(format!("postgres://h/db?{query}")).build();
        let Err(Error::InvalidOptions(sentence)) = built.map(drop) else { panic!("{query}") };
        assert!(sentence.contains(says), "{query}: {sentence}");
    }
}
