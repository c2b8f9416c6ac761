//! Bodies that block a thread of their runtime, after an await, in a process that does little else.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::RedisServer;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

const TTL: Duration = Duration::from_secs(3);

/// Longer than two leases.
const BLOCKED: Duration = Duration::from_secs(7);

fn threads(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

/// A server, and a manager whose connection is driven by this runtime and sends no heartbeat meanwhile.
fn server_of(runtime: &Runtime) -> (RedisServer, LockManager) {
    runtime.block_on(async {
        let server = RedisServer::start().await;
        let manager = LockManager::connect(server.url_with("heartbeat=60s")).await.unwrap();
        (server, manager)
    })
}

/// Holds `key` while a body waits for a moment, and then blocks its thread for longer than the lease. Nothing else
/// runs on this runtime.
fn hold_and_block(runtime: &Runtime, manager: &LockManager, key: &'static str) {
    let manager = manager.clone();
    let body = runtime.spawn(async move {
        let guard = manager.acquire(key, LockOptions::new().ttl(TTL)).await.unwrap();
        sleep(TTL / 30).await;
        block();
        // By the clock, before any other task could have renewed it meanwhile.
        guard.ensure_held().unwrap();
        let holder = manager.holder(key).await.unwrap().expect("it is held in the store");
        assert_eq!(holder.process, Some(std::process::id()));
        guard.release().await.unwrap();
        assert_eq!(manager.holder(key).await.unwrap(), None);
    });
    runtime.block_on(body).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the fault that is meant")]
fn block() {
    thread::sleep(BLOCKED);
}

/// The body is woken by a timer. The worker that polled the timers runs it, and tokio puts no other in its place.
///
/// Red without: the task that `Unparker` spawns.
#[test]
fn a_lock_is_renewed_while_its_body_blocks_one_of_several_threads() {
    let runtime = threads(2);
    let manager = runtime.block_on(LockManager::connect("memory://")).unwrap();
    hold_and_block(&runtime, &manager, "blocked:memory");
}

/// The answers of the server have to be read, too.
#[test]
fn a_lock_of_a_server_is_renewed_while_its_body_blocks_one_of_several_threads() {
    let runtime = threads(4);
    let (server, manager) = server_of(&runtime);
    hold_and_block(&runtime, &manager, "blocked:redis");
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
        let options = LockOptions::new().ttl(TTL);
        let outer = manager.acquire("blocked:outer", options).await.unwrap();
        let options = LockOptions::new().ttl(TTL * 100);
        let inner = manager.acquire("blocked:inner", options).await.unwrap();
        let (says, hears) = channel();
        let waits = thread::spawn(move || {
            let options = LockOptions::new().wait(BLOCKED * 4);
            let guard = elsewhere.acquire_blocking("blocked:inner", options).unwrap();
            block();
            says.send(elsewhere.holder_blocking("blocked:outer").unwrap()).unwrap();
            guard.release_blocking().unwrap();
        });
        drop(inner);
        // Blocks for longer than two leases of the outer lock, and much shorter than the lease of the inner one.
        let holder = hears.recv_timeout(BLOCKED * 5).expect("the inner lock is released");
        assert_eq!(holder.and_then(|holder| holder.process), Some(std::process::id()));
        outer.ensure_held().unwrap();
        outer.release().await.unwrap();
        waits.join().unwrap();
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
    let later = manager.clone();
    let other = runtime.spawn(async move {
        // It does not wait for the dropped lock: the drop would wake it, and it would wait for the blocked thread too.
        sleep(TTL).await;
        assert_eq!(later.holder("blocked:first").await.unwrap(), None, "released meanwhile");
        let options = LockOptions::new().ttl(TTL);
        let guard = later.acquire("blocked:late", options).await.unwrap();
        sleep(BLOCKED).await;
        says.send(guard.ensure_held()).unwrap();
        guard.release().await.unwrap();
        assert_eq!(later.holder("blocked:late").await.unwrap(), None);
    });
    let body = runtime.spawn(async move {
        let options = LockOptions::new().ttl(TTL * 100);
        drop(manager.acquire("blocked:first", options).await.unwrap());
        let held = hears.recv_timeout(BLOCKED * 5).expect("the other task goes on");
        held.unwrap();
    });
    runtime.block_on(async { tokio::try_join!(body, other).unwrap() });
    drop(runtime);
    drop(server);
}
