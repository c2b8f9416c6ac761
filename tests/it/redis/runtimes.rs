//! Runtimes that end while locks are held: the locks are soon released.
//!
//! No later call acquires or shuts down, so none could release them along the way.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions, Release, distributed_lock};
use lockattr_tests::{Proxy, RedisServer, assert_nothing_left, eventually, node, with_query};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::Instant;

const COUNT: u32 = 20;

/// One runtime of each kind.
fn runtimes() -> [Runtime; 2] {
    let several = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    [Builder::new_current_thread().enable_all().build().unwrap(), several.unwrap()]
}

/// The server, and a runtime beside those that end.
struct Outside {
    runtime: Runtime,
    server: RedisServer,
}

impl Outside {
    fn new() -> Self {
        let [_, runtime] = runtimes();
        let server = runtime.block_on(RedisServer::start());
        Self { runtime, server }
    }

    fn manager(&self) -> LockManager {
        LockManager::builder().url(self.server.url()).build().unwrap()
    }

    /// Asserts that `COUNT` locks are held.
    fn all_held(&self) {
        let keys = async { self.server.cli().await.keys("lock:*").await };
        assert_eq!(self.runtime.block_on(keys).len(), COUNT as usize);
    }

    fn all_free_soon(&self) {
        self.runtime.block_on(assert_nothing_left(&self.server));
    }
}

#[distributed_lock(key = "<id>", manager = &manager)]
async fn stuck(manager: LockManager, id: u32, inside: Arc<Semaphore>) -> Result<(), Error> {
    inside.add_permits(1);
    pending().await
}

/// Spawns `COUNT` calls that are in their bodies when this returns.
async fn spawn_stuck(manager: &LockManager) {
    let inside = Arc::new(Semaphore::new(0));
    for id in 0..COUNT {
        drop(tokio::spawn(stuck(manager.clone(), id, inside.clone())));
    }
    let _all = inside.acquire_many(COUNT).await.unwrap();
}

async fn guards(manager: &LockManager) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for id in 0..COUNT {
        guards.push(manager.acquire(id.to_string(), LockOptions::new()).await.unwrap());
    }
    guards
}

#[test]
fn bodies_that_end_with_their_runtime_release_their_locks() {
    for runtime in runtimes() {
        let outside = Outside::new();
        let manager = outside.manager();
        runtime.block_on(spawn_stuck(&manager));
        outside.all_held();
        drop(runtime);
        outside.all_free_soon();
        drop(manager);
    }
}

#[test]
fn bodies_release_their_locks_when_their_runtime_is_shut_down_in_the_background() {
    for runtime in runtimes() {
        let outside = Outside::new();
        let manager = outside.manager();
        runtime.block_on(spawn_stuck(&manager));
        outside.all_held();
        runtime.shutdown_background();
        outside.all_free_soon();
        drop(manager);
    }
}

/// The manager may be gone as well: the guards own what they need.
#[test]
fn guards_that_outlive_their_runtime_release_their_locks() {
    for keep_manager in [true, false] {
        for runtime in runtimes() {
            let outside = Outside::new();
            let mut manager = Some(outside.manager());
            let guards = runtime.block_on(guards(manager.as_ref().unwrap()));
            drop(runtime);
            if !keep_manager {
                manager = None;
            }
            outside.all_held();
            drop(guards);
            outside.all_free_soon();
            drop(manager);
        }
    }
}

/// As in a `#[tokio::test]` that ends with a guard in scope: the task that would send the release
/// never runs again.
#[test]
fn guards_dropped_just_before_their_runtime_ends_release_their_locks() {
    for runtime in runtimes() {
        let outside = Outside::new();
        let manager = outside.manager();
        runtime.block_on(async { drop(guards(&manager).await) });
        drop(runtime);
        outside.all_free_soon();
        drop(manager);
    }
}

/// The last call of a runtime: its release is sent and not waited for.
#[test]
fn releases_in_the_background_survive_the_end_of_their_runtime() {
    for runtime in runtimes() {
        let outside = Outside::new();
        let manager = outside.manager();
        let background = LockOptions::new().release(Release::Background);
        let body = async |_: &lockattr::Lease| ();
        runtime.block_on(manager.with_lock("a", background, body)).unwrap();
        drop(runtime);
        outside.all_free_soon();
        drop(manager);
    }
}

/// The server granted the lock, but the answer never reaches its caller.
#[test]
fn a_pending_acquire_is_undone_when_its_runtime_ends() {
    for runtime in runtimes() {
        let outside = Outside::new();
        let proxy = outside.runtime.block_on(Proxy::start(outside.server.addr()));
        let url = with_query(&outside.server.url_through(&proxy), "connections=1");
        let manager = LockManager::builder().url(url).build().unwrap();
        let once = || LockOptions::new().retry(0);
        runtime.block_on(async {
            manager.acquire("b", once()).await.unwrap().release().await.unwrap();
            proxy.swallow_replies();
            let cloned = manager.clone();
            drop(tokio::spawn(async move { cloned.acquire("a", once()).await }));
            let cli = outside.server.cli().await;
            eventually("granted", async || cli.value("lock:a").await.is_some()).await;
            // New connections work again; this one has lost its answer for good.
            proxy.pass();
        });
        drop(runtime);
        outside.all_free_soon();
        drop(manager);
    }
}

/// `main` returns, which ends the runtime and then the process, without a call to `shutdown`.
#[tokio::test]
async fn a_process_whose_main_returns_while_tasks_hold_leaves_nothing() {
    for how in ["bodies", "guards"] {
        let server = RedisServer::start().await;
        let mut node = node!("leave", url = server.url(), count = 50, how = how);
        assert_eq!(node.line().await, "holding");
        assert_eq!(server.cli().await.keys("lock:*").await.len(), 50);
        let returns = Instant::now();
        assert!(node.finish().await.success());
        // The process is gone, so a lock that it left would stay. It waits a second for the server.
        let left = server.cli().await.keys("lock:*").await;
        let waited = returns.elapsed() >= Duration::from_millis(900);
        assert!(left.is_empty() || waited, "{how}: {} locks left: {left:?}", left.len());
    }
}
