//! `?lock=session`: at most `max_sessions` connections, for which callers wait in this process.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{eventually, in_time};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

use super::Database;
use super::observer::Observer;

/// Red without: the places in `Pool`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_share_the_connections_and_lose_nothing() {
    let database = Database::new().await;
    let mut observer = Observer::of(&database).await;
    let url = database.url("lock=session&max_sessions=24");
    let manager = LockManager::connect(url).await.unwrap();
    let mut held = Vec::new();
    for nth in 0..20 {
        let options = LockOptions::new().ttl(Duration::from_secs(20));
        held.push(manager.acquire(format!("held{nth}"), options).await.unwrap());
    }
    let mut tasks = JoinSet::new();
    for nth in 0..1_000 {
        let manager = manager.clone();
        tasks.spawn(async move {
            for _ in 0..3 {
                let guard = manager.acquire(format!("own{nth}"), LockOptions::new()).await;
                guard.unwrap().release().await.unwrap();
            }
        });
    }
    let mut most = 0;
    let all = async {
        while !tasks.is_empty() {
            most = most.max(observer.connections().await);
            while let Some(ended) = tasks.try_join_next() {
                ended.unwrap();
            }
        }
    };
    in_time(all).await;
    // The server still lists connections that their client has just closed.
    assert!((20..100).contains(&most), "{most} connections");
    for (nth, guard) in held.into_iter().enumerate() {
        guard.ensure_held().unwrap();
        guard.release().await.unwrap();
        assert!(observer.is_free(&format!("held{nth}")).await);
    }
}

/// Red without: the order of `Pool::place`.
#[tokio::test]
async fn callers_get_a_connection_in_their_order() {
    let database = Database::new().await;
    let mut observer = Observer::of(&database).await;
    let manager = database.manager("lock=session&max_sessions=1").await;
    let guard = manager.acquire("first", LockOptions::new()).await.unwrap();
    let (sender, mut order) = unbounded_channel();
    for nth in 0..5 {
        let (manager, sender) = (manager.clone(), sender.clone());
        tokio::spawn(async move {
            let guard = manager.acquire(format!("k{nth}"), LockOptions::new()).await.unwrap();
            sender.send(nth).unwrap();
            guard.release().await.unwrap();
        });
        // One thread runs all tasks, so this one asks before the next begins.
        tokio::task::yield_now().await;
    }
    assert!(observer.is_free("k0").await && order.try_recv().is_err());
    guard.release().await.unwrap();
    for nth in 0..5 {
        assert_eq!(in_time(order.recv()).await, Some(nth));
    }
    let free = async || observer.is_free("k4").await;
    eventually("the last lock is free", free).await;
    eventually("one connection", async || observer.connections().await == 1).await;
}

/// Its request was never sent, so the other lock says nothing about its own.
///
/// Red without: what `no_response` says without a refusal.
#[tokio::test]
async fn a_caller_that_waits_for_a_connection_in_vain_learns_of_no_holder() {
    let database = Database::new().await;
    let mut observer = Observer::of(&database).await;
    let manager = database.manager("lock=session&max_sessions=1&heartbeat=1h").await;
    let guard = manager.acquire("first", LockOptions::new()).await.unwrap();
    let options = LockOptions::new().wait(Duration::from_millis(300));
    let refused = manager.acquire("second", options).await.map(drop);
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    guard.ensure_held().unwrap();
    assert!(observer.is_free("second").await);
    guard.release().await.unwrap();
    manager.acquire("second", LockOptions::new()).await.unwrap().release().await.unwrap();
    assert!(observer.is_free("second").await);
}

/// Red without: `end_surplus`.
#[tokio::test]
async fn connections_of_a_crowd_are_closed_when_it_has_gone() {
    let database = Database::new().await;
    let mut observer = Observer::of(&database).await;
    let settings = "lock=session&max_sessions=10&connections=2&heartbeat=300ms";
    let manager = database.manager(settings).await;
    let mut held = Vec::new();
    for nth in 0..10 {
        held.push(manager.acquire(format!("k{nth}"), LockOptions::new()).await.unwrap());
    }
    eventually("ten of them", async || observer.connections().await == 10).await;
    for guard in held {
        guard.release().await.unwrap();
    }
    // If a busy machine is late with a heartbeat, the server ends one more.
    eventually("two are left", async || observer.connections().await <= 2).await;
    manager.acquire("k", LockOptions::new()).await.unwrap().release().await.unwrap();
    eventually("at most two", async || observer.connections().await <= 2).await;
}

/// Red without: `read_max_sessions`, or its range.
#[tokio::test]
async fn the_setting_is_checked_and_belongs_to_session_locks() {
    for (query, says) in [
        ("lock=session&max_sessions=0", "`max_sessions` must be 1 to 10000"),
        ("lock=session&max_sessions=many", "not a whole number"),
        ("max_sessions=4", "`max_sessions` with `lock=session`"),
    ] {
        let built = LockManager::builder().url(format!("mysql://h/db?{query}")).build();
        let Err(Error::InvalidOptions(sentence)) = built.map(drop) else { panic!("{query}") };
        assert!(sentence.contains(says), "{query}: {sentence}");
    }
}
