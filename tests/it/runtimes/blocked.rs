//! Bodies that block a thread of their runtime, after an await, in a process that does little else.
//!
//! The body is woken by a timer. The worker that polled the timers runs it, and tokio puts no other in its place.

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
    let (server, manager) = runtime.block_on(async {
        let server = RedisServer::start().await;
        let manager = LockManager::connect(server.url_with("heartbeat=60s")).await.unwrap();
        (server, manager)
    });
    hold_and_block(&runtime, &manager, "blocked:redis");
    drop(runtime);
    drop(server);
}
