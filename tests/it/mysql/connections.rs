//! How many connections a process opens, as the docs of `MysqlStore` count them.

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::eventually;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::Database;
use super::observer::Observer;

/// The two connections that listen.
const LISTENING: usize = 2;

async fn assert_connections(observer: &mut Observer, expected: usize) {
    let what = format!("{expected} connections");
    eventually(&what, async || observer.connections().await == expected).await;
}

/// Every connection that this store can use for a single lock has carried one.
async fn used(manager: &LockManager) {
    for key in 0..20 {
        acquire(manager, &format!("{key}")).await.release().await.unwrap();
    }
}

async fn acquire(manager: &LockManager, key: &str) -> LockGuard {
    manager.acquire(key, LockOptions::new()).await.unwrap()
}

/// Tasks that wait for this lock.
fn waiters(manager: &LockManager, keys: &[&'static str]) -> JoinSet<()> {
    let waits = |key| {
        let manager = manager.clone();
        async move { acquire(&manager, key).await.release().await.unwrap() }
    };
    keys.iter().map(|key| waits(*key)).collect()
}

#[tokio::test]
async fn leases_have_their_connections_and_two_that_listen_whoever_waits() {
    for connections in [1, 3] {
        let database = Database::new().await;
        let mut observer = Observer::of(&database).await;
        let settings = format!("connections={connections}");
        let one = database.manager(&settings).await;
        assert_connections(&mut observer, 1).await;
        used(&one).await;
        let of_each = connections + LISTENING;
        assert_connections(&mut observer, of_each).await;
        let other = database.manager(&settings).await;
        used(&other).await;
        assert_connections(&mut observer, 2 * of_each).await;

        let held = [acquire(&one, "a").await, acquire(&one, "b").await, acquire(&one, "c").await];
        // The tasks that wait for the same lock queue in their process, behind one of them.
        let waiting = waiters(&other, &["a", "a", "a", "b", "b", "c"]);
        database.has_queued(3).await;
        // That of the question before may not have ended yet.
        assert_connections(&mut observer, 2 * of_each).await;
        for held in held {
            held.release().await.unwrap();
        }
        waiting.join_all().await;
        assert_connections(&mut observer, 2 * of_each).await;
        drop((one, other));
        assert_connections(&mut observer, 0).await;
    }
}

#[tokio::test]
async fn session_locks_have_one_for_each_holder_and_each_waiter_up_to_the_most() {
    let database = Database::new().await;
    let mut observer = Observer::of(&database).await;
    let manager = async |max_sessions: usize| {
        let settings = "lock=session&connections=1&heartbeat=300ms";
        database.manager(&format!("{settings}&max_sessions={max_sessions}")).await
    };
    let (one, other) = (manager(3).await, manager(2).await);
    // To connect, each has asked the server over a connection that is closed again.
    assert_connections(&mut observer, 0).await;
    let held = [acquire(&one, "a").await, acquire(&one, "b").await, acquire(&one, "c").await];
    assert_connections(&mut observer, 3).await;
    // The third caller waits in its process.
    let waiting = waiters(&other, &["a", "b", "c"]);
    assert_connections(&mut observer, 3 + 2).await;
    for held in held {
        held.release().await.unwrap();
    }
    waiting.join_all().await;
    // A heartbeat closes the rest.
    assert_connections(&mut observer, 1 + 1).await;
    drop((one, other));
    assert_connections(&mut observer, 0).await;
}

#[test]
fn each_runtime_has_its_own() {
    let runtime = || -> Runtime { Builder::new_current_thread().enable_all().build().unwrap() };
    let (first, second) = (runtime(), runtime());
    let database = first.block_on(Database::new());
    let mut observer = first.block_on(Observer::of(&database));
    let manager = first.block_on(database.manager("connections=1"));
    first.block_on(used(&manager));
    second.block_on(used(&manager));
    first.block_on(assert_connections(&mut observer, 2 * (1 + LISTENING)));
    // The connections end with the runtime that made them.
    drop(second);
    first.block_on(assert_connections(&mut observer, 1 + LISTENING));
}
