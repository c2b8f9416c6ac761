//! Runtime threads that are busy for longer than a lease: which locks are lost, and which must not
//! be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use lockattr::{Error, Lease, LockGuard, LockManager, LockOptions, OnLost};
use lockattr_tests::{HUNG, RedisServer, assert_nothing_left, eventually, node};
use tokio::runtime::{Builder, Runtime};

const SECOND: Duration = Duration::from_secs(1);

/// Renewed after a third of it.
const TTL: Duration = Duration::from_secs(15);

/// A computation blocks the runtime's only thread, so nothing renews and no loss is reported in
/// time. The clock shows the loss at the next check, and the successor is not disturbed.
#[tokio::test(flavor = "current_thread")]
#[expect(clippy::disallowed_methods, reason = "the fault that is meant")]
async fn a_body_that_keeps_the_only_thread_for_longer_than_its_lease_has_lost_it() {
    for on_lost in [OnLost::Cancel, OnLost::Error] {
        let server = RedisServer::start().await;
        let manager = LockManager::connect(&server.url()).await.unwrap();
        let mut successor = node!("lock", url = server.url());
        // The node is started and connected before the lease begins.
        successor.say("fence b 1").await;
        successor.line().await;
        let ttl = SECOND / 2;
        let has_computed = AtomicBool::new(false);
        // On a busy machine so short a lease may end before the body begins.
        while !has_computed.load(Ordering::Relaxed) {
            let body = async |lease: &Lease| {
                successor.say("acquire a").await;
                thread::sleep(2 * ttl);
                has_computed.store(true, Ordering::Relaxed);
                assert!(matches!(lease.ensure_held(), Err(Error::Lost { .. })), "{lease:?}");
                17
            };
            let options = LockOptions::new().ttl(ttl).on_lost(on_lost);
            let outcome = manager.with_lock("a", options, body).await;
            assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
        }
        let reply = successor.line().await;
        assert!(reply.starts_with("held "), "{reply}");
        successor.say("release").await;
        assert_eq!(successor.line().await, "released", "a late release freed the successor");
        assert!(successor.finish().await.success());
        assert_nothing_left(&server).await;
    }
}

/// A runtime with two threads, used from the test's own runtime: while one of the two is busy, the
/// test itself must go on.
struct Beside {
    observer: Runtime,
    server: RedisServer,
    manager: LockManager,
    two_threads: Runtime,
}

impl Beside {
    fn new() -> Self {
        let observer = Builder::new_current_thread().enable_all().build().unwrap();
        let two_threads = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let server = observer.block_on(RedisServer::start());
        let manager = LockManager::builder().url(server.url()).build().unwrap();
        Self { observer, server, manager, two_threads: two_threads.unwrap() }
    }

    fn acquire(&self, key: &str) -> LockGuard {
        let options = LockOptions::new().ttl(TTL);
        self.two_threads.block_on(self.manager.acquire(key, options)).unwrap()
    }

    /// Waits until the lease has aged and been renewed, several times. Starts no watchdog on this
    /// runtime.
    fn is_renewed_on(&self, lease: &Lease) {
        self.observer.block_on(async {
            for _ in 0..2 {
                let (aged, fresh) = (TTL * 3 / 4, TTL * 5 / 6);
                eventually("it ages", async || {
                    lease.ensure_held().unwrap();
                    lease.remaining() < aged
                })
                .await;
                eventually("it is renewed", async || {
                    lease.ensure_held().unwrap();
                    lease.remaining() > fresh
                })
                .await;
            }
        });
    }

    fn release(&self, guard: LockGuard) {
        self.two_threads.block_on(guard.release()).unwrap();
        self.observer.block_on(assert_nothing_left(&self.server));
    }
}

/// Blocks its thread until the test drops its `Arc`, or fails.
#[expect(clippy::disallowed_methods, reason = "the fault that is meant")]
fn compute_until_notified(finished: &Arc<()>) {
    while Arc::strong_count(finished) > 1 {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The body computes as soon as its lock is granted. What the grant started on that thread must
/// move to another thread, and so must that thread's duties for the runtime.
#[test]
fn a_body_that_computes_from_its_first_line_does_not_stop_the_renewals_of_others() {
    let beside = Beside::new();
    let guard = beside.acquire("other");
    let finished = Arc::new(());
    let (begin, begun) = mpsc::channel();
    let busy = {
        let (manager, finished) = (beside.manager.clone(), finished.clone());
        beside.two_threads.spawn(async move {
            let body = async move |_: &Lease| {
                begin.send(()).unwrap();
                compute_until_notified(&finished);
            };
            // Due for renewal before the other lease, so the watchdog is woken for it.
            let short = LockOptions::new().ttl(TTL / 3).on_lost(OnLost::Ignore);
            manager.with_lock("job", short, body).await
        })
    };
    begun.recv_timeout(HUNG).unwrap();
    beside.is_renewed_on(&guard);
    drop(finished);
    beside.two_threads.block_on(busy).unwrap().unwrap();
    beside.release(guard);
}
