//! Plain locked functions over Redis, beside async ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, distributed_lock};
use lockattr_tests::{RedisServer, assert_nobody_listens, assert_nothing_left};
use tokio::task::spawn_blocking;

#[distributed_lock(key = "stock", manager = manager, wait = "60s", lease = lease)]
fn sell(manager: &LockManager, stock: &AtomicU32) -> Result<u64, Error> {
    let left = stock.load(Ordering::SeqCst);
    thread::yield_now();
    stock.store(left - 1, Ordering::SeqCst);
    Ok(lease.fencing_token().into())
}

/// Four threads, with one manager each or one for all.
#[tokio::test]
async fn threads_of_several_managers_take_turns_and_leave_nothing() {
    let server = RedisServer::start().await;
    for managers in [1, 4] {
        let stock = Arc::new(AtomicU32::new(100));
        let (url, sold) = (server.url(), stock.clone());
        let threads = move || {
            let managers: Vec<_> =
                (0..managers).map(|_| LockManager::connect_blocking(&url).unwrap()).collect();
            let tokens: Vec<u64> = thread::scope(|scope| {
                let sells = |n: usize| {
                    let manager = &managers[n % managers.len()];
                    let sold = &sold;
                    move || (0..25).map(|_| sell(manager, sold).unwrap()).collect::<Vec<_>>()
                };
                let threads: Vec<_> = (0..4).map(|n| scope.spawn(sells(n))).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            for manager in &managers {
                manager.shutdown_blocking().unwrap();
            }
            tokens
        };
        let mut tokens = spawn_blocking(threads).await.unwrap();
        assert_eq!(stock.load(Ordering::SeqCst), 0);
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), 100, "a fencing token was issued twice");
    }
    assert_nothing_left(&server).await;
    assert_nobody_listens(&server).await;
}

/// A body without an await runs until its lease is renewed, and no other process acquires the lock.
#[tokio::test]
async fn a_thread_that_computes_for_longer_than_its_lease_keeps_it() {
    let server = RedisServer::start().await;
    // The lease is renewed after five seconds, and would be kept if that took ten more.
    let url = server.url_with("ttl=15s");
    let works = move || {
        let manager = LockManager::connect_blocking(&url)?;
        let other = LockManager::connect_blocking(&url)?;
        let kept = manager.with_lock_blocking("report", LockOptions::new(), |lease| {
            let (mut before, mut left) = (Duration::ZERO, lease.remaining());
            // It grows when the lease is renewed.
            while before == Duration::ZERO || left <= before {
                assert!(other.try_acquire_blocking("report", LockOptions::new())?.is_none());
                thread::park_timeout(Duration::from_millis(5));
                lease.ensure_held()?;
                (before, left) = (left, lease.remaining());
            }
            Ok::<_, Error>(())
        });
        kept?
    };
    spawn_blocking(works).await.unwrap().unwrap();
    assert_nothing_left(&server).await;
}

/// A guard is dropped in the last line of a program without a runtime.
#[tokio::test]
async fn a_plain_program_that_ends_has_released_its_locks() {
    let server = RedisServer::start().await;
    let mut node = lockattr_tests::node!("plain", url = server.url_with("ttl=600s"));
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}
