//! Shutdowns whose store is down or slow: they end within their limits, and a store that comes back
//! still gets the releases.

use std::future::pending;
use std::time::Duration;

use lockattr::{Lease, LockManager, LockOptions, OnLost};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, in_time};
use tokio::time::{Instant, sleep, timeout};

use super::SECOND;
use crate::support::{Fate, Scripted};

fn deaf() -> LockOptions {
    LockOptions::new().ttl(3600 * SECOND).on_lost(OnLost::Error)
}

/// One limit for the bodies, and one for the store (less the last pause between two attempts).
#[tokio::test(start_paused = true)]
async fn bodies_that_do_not_stop_and_a_store_that_does_not_answer_take_two_limits() {
    for fate in [Fate::Hangs, Fate::Refused] {
        let store = Scripted::new();
        let builder = LockManager::builder().store(store.clone()).shutdown_timeout(3 * SECOND);
        let manager = builder.build().unwrap();
        let body = {
            let manager = manager.clone();
            tokio::spawn(async move {
                manager.with_lock("job", deaf(), async |_: &Lease| pending::<()>().await).await
            })
        };
        let _by_hand = manager.acquire("by hand", deaf()).await.unwrap();
        sleep(SECOND).await;
        store.releases(&[fate]);
        store.renewals(&[fate]);
        let started = Instant::now();
        timeout(60 * SECOND, manager.shutdown()).await.expect("it ends");
        let lasted = started.elapsed();
        assert!(lasted >= 5 * SECOND && lasted <= 6 * SECOND, "{fate:?}: {lasted:?}");
        body.abort();
    }
}

/// The store comes back within the second limit.
#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_in_time_gets_its_releases() {
    let store = Scripted::new();
    let manager = store.manager();
    std::mem::forget(manager.acquire("job", deaf()).await.unwrap());
    store.releases(&[Fate::Refused, Fate::ReplyLost, Fate::Answered]);
    let started = Instant::now();
    manager.shutdown().await;
    let lasted = started.elapsed();
    assert!(lasted >= 10 * SECOND && lasted < 20 * SECOND, "{lasted:?}");
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

/// With a limit of zero the shutdown still notifies all bodies and sends the releases.
#[tokio::test(start_paused = true)]
async fn without_any_wait_budget_the_bodies_are_still_notified() {
    let builder = LockManager::builder().url("memory://?shutdown_timeout=0s");
    let manager = builder.build().unwrap();
    let guard = manager.acquire("job", deaf()).await.unwrap();
    let started = Instant::now();
    manager.shutdown().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(guard.ensure_held().is_err());
    let free = async || manager.holder("job").await.unwrap().is_none();
    let released = eventually("released a little later", free);
    timeout(SECOND, released).await.expect("before its lease ends");
}

/// A stopped server accepts everything and never replies. A dead one refuses connections.
#[tokio::test]
async fn it_ends_within_its_limits_though_redis_is_gone() {
    for frozen in [true, false] {
        let server = RedisServer::start().await;
        let query = "shutdown_timeout=500ms&response_timeout=1s&connect_timeout=1s";
        let manager = LockManager::builder().url(server.url_with(query)).build().unwrap();
        let _by_hand = manager.acquire("by hand", LockOptions::new()).await.unwrap();
        let body = {
            let manager = manager.clone();
            tokio::spawn(async move {
                let body = async |_: &Lease| pending::<()>().await;
                manager.with_lock("job", LockOptions::new(), body).await
            })
        };
        let cli = server.cli().await;
        let both = async || cli.keys("lock:*").await.len() == 2;
        eventually("both are held", both).await;
        if frozen {
            server.stop_signal();
        } else {
            server.kill();
        }
        in_time(manager.shutdown()).await;
        // The body is notified at once, but may still wait for the reply to its release.
        in_time(body).await.unwrap().unwrap_err();
        if frozen {
            server.continue_signal();
            assert_nothing_left(&server).await;
        }
    }
}

/// Hundreds of locks, held by bodies, by guards and by leaked guards: one call releases all of
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_leaves_nothing_in_redis() {
    let server = RedisServer::start().await;
    let url = server.url_with("shutdown_timeout=10s");
    let manager = LockManager::connect(&url).await.unwrap();
    let mut guards = Vec::new();
    for n in 0..300 {
        let (key, options) = (n.to_string(), LockOptions::new());
        if n % 3 == 0 {
            let manager = manager.clone();
            let body = async |_: &Lease| pending::<()>().await;
            drop(tokio::spawn(async move { manager.with_lock(key, options, body).await }));
        } else {
            let guard = manager.acquire(key, options).await.unwrap();
            if n % 3 == 1 { guards.push(guard) } else { std::mem::forget(guard) }
        }
    }
    let cli = server.cli().await;
    let all = async || cli.keys("lock:*").await.len() == 300;
    eventually("all are held", all).await;
    in_time(manager.shutdown()).await;
    // Checked without a wait: after the shutdown returns, the process may end.
    let left = cli.keys("lock:*").await;
    assert!(left.is_empty(), "{} left: {left:?}", left.len());
    assert!(guards.iter().all(|guard| guard.ensure_held().is_err()));
}
