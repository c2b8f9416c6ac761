//! Bodies that block a thread of their runtime, after an await, in a process that does little else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use lockattr::store::MemoryStore;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{HUNG, RedisServer};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

/// Renewed after a third of it, which leaves a slow machine ten seconds.
const TTL: Duration = Duration::from_secs(15);

/// Between the ends of a lease and of the renewed one.
const LATER: Duration = Duration::from_secs(2);

fn threads(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

/// A server, and a manager whose connection is driven by this runtime and sends no heartbeat meanwhile.
fn server_of(runtime: &Runtime) -> (RedisServer, LockManager) {
    runtime.block_on(async {
        let server = RedisServer::start().await;
        let manager = LockManager::connect(server.url_with("heartbeat=1h")).await.unwrap();
        (server, manager)
    })
}

/// Holds `key` while a body waits for a moment, and then blocks its thread until another process, `elsewhere`, sees
/// the lease renewed. Nothing else runs on this runtime.
fn hold_and_block(
    runtime: &Runtime,
    manager: &LockManager,
    elsewhere: LockManager,
    key: &'static str,
) {
    let manager = manager.clone();
    let body = runtime.spawn(async move {
        let guard = manager.acquire(key, LockOptions::new().ttl(TTL)).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        thread::spawn(move || wait_until_renewed(&elsewhere, key)).join().unwrap();
        guard.ensure_held().unwrap();
        guard.release().await.unwrap();
        assert_eq!(manager.holder(key).await.unwrap(), None);
    });
    runtime.block_on(body).unwrap();
}

/// Blocks a thread until the lease of this process on `key` is renewed in the store.
#[expect(clippy::disallowed_methods, reason = "no runtime runs on this thread")]
fn wait_until_renewed(elsewhere: &LockManager, key: &str) {
    let end = || {
        let holder = elsewhere.holder_blocking(key).unwrap().expect("it is held in the store");
        assert_eq!(holder.process, Some(std::process::id()));
        Instant::now() + holder.remaining.unwrap()
    };
    let first = end();
    while end() < first + LATER {
        thread::sleep(TTL / 100);
    }
}

/// The body is woken by a timer. The worker that polled the timers runs it, and tokio puts no other in its place.
///
/// Red without: the task that `Unparker` spawns.
#[test]
fn a_lock_is_renewed_while_its_body_blocks_one_of_several_threads() {
    let (runtime, store) = (threads(2), Arc::new(MemoryStore::new()));
    let manager = || LockManager::builder().store(store.clone()).build().unwrap();
    hold_and_block(&runtime, &manager(), manager(), "blocked:memory");
}

/// The answers of the server have to be read, too.
#[test]
fn a_lock_of_a_server_is_renewed_while_its_body_blocks_one_of_several_threads() {
    let runtime = threads(4);
    let (server, manager) = server_of(&runtime);
    let elsewhere = LockManager::connect_blocking(server.url()).unwrap();
    hold_and_block(&runtime, &manager, elsewhere, "blocked:redis");
    drop(runtime);
    drop(server);
}

/// The drop wakes the watchdog's task, which then waits for this thread and can be polled by no other.
///
/// Red without: the work of the task that stands in.
#[test]
fn a_lock_that_is_dropped_right_before_its_thread_blocks_is_released_and_the_outer_one_renewed() {
    let runtime = threads(2);
    let (server, manager) = server_of(&runtime);
    let elsewhere = LockManager::connect_blocking(server.url()).unwrap();
    let body = runtime.spawn(async move {
        let outer = manager.acquire("blocked:outer", LockOptions::new().ttl(TTL)).await.unwrap();
        let inner = manager.acquire("blocked:inner", LockOptions::new()).await.unwrap();
        let (says, hears) = channel();
        let waits = thread::spawn(move || {
            let guard = elsewhere.acquire_blocking("blocked:inner", LockOptions::new()).unwrap();
            wait_until_renewed(&elsewhere, "blocked:outer");
            says.send(()).unwrap();
            guard.release_blocking().unwrap();
        });
        drop(inner);
        hears.recv_timeout(HUNG).expect("the inner lock is released, and the outer one renewed");
        outer.ensure_held().unwrap();
        outer.release().await.unwrap();
        waits.join().unwrap();
    });
    runtime.block_on(body).unwrap();
    drop(runtime);
    drop(server);
}

/// The watchdog's task rests: it waits for no timer, and the body wakes it right before it blocks.
///
/// Red without: the thread that learns of each wake.
#[test]
fn a_lock_that_is_dropped_while_the_watchdog_rests_is_released() {
    let runtime = threads(2);
    let (server, manager) = server_of(&runtime);
    let elsewhere = LockManager::connect_blocking(server.url()).unwrap();
    let body = runtime.spawn(async move {
        let guard = manager.acquire("blocked:before", LockOptions::new()).await.unwrap();
        guard.release().await.unwrap();
        // On a busy machine another thread may run the watchdog's task just then, but hardly each time.
        for key in ["blocked:first", "blocked:second", "blocked:third"] {
            // It begins to rest a second after the last lease.
            sleep(Duration::from_secs(2)).await;
            drop(manager.acquire(key, LockOptions::new()).await.unwrap());
            let elsewhere = elsewhere.clone();
            let other = thread::spawn(move || {
                let guard = elsewhere.acquire_blocking(key, LockOptions::new()).unwrap();
                guard.release_blocking().unwrap();
            });
            other.join().unwrap();
        }
    });
    runtime.block_on(body).unwrap();
    drop(runtime);
    drop(server);
}

/// Nothing is due any more when the dropped lock is released, and the watchdog's task cannot be woken.
#[test]
fn a_lock_that_is_acquired_while_another_stands_in_for_the_watchdog_is_renewed() {
    let runtime = threads(2);
    let (server, manager) = server_of(&runtime);
    let (says, hears) = channel();
    let (later, acquired) = (manager.clone(), Arc::new(AtomicBool::new(false)));
    let first = acquired.clone();
    let other = runtime.spawn(async move {
        // It does not wait for the dropped lock: the drop would wake it, and it would wait for the blocked thread too.
        while !first.load(Ordering::SeqCst)
            || later.holder("blocked:first").await.unwrap().is_some()
        {
            sleep(TTL / 1000).await;
        }
        let guard = later.acquire("blocked:late", LockOptions::new().ttl(TTL)).await.unwrap();
        let end = || Instant::now() + guard.remaining();
        let first = end();
        while end() < first + LATER {
            sleep(TTL / 1000).await;
        }
        says.send(guard.ensure_held()).unwrap();
        guard.release().await.unwrap();
        assert_eq!(later.holder("blocked:late").await.unwrap(), None);
    });
    let body = runtime.spawn(async move {
        let guard = manager.acquire("blocked:first", LockOptions::new()).await.unwrap();
        acquired.store(true, Ordering::SeqCst);
        drop(guard);
        hears.recv_timeout(HUNG).expect("the other task goes on").unwrap();
    });
    runtime.block_on(async { tokio::try_join!(body, other).unwrap() });
    drop(runtime);
    drop(server);
}
