//! Shutdown: it stops granting, notifies the bodies, waits for them, and releases everything, in
//! that order, and always ends.

mod again;
mod away;
mod waiters;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::store::MemoryStore;
use lockattr::{Error, Lease, LockManager, LockOptions, LostReason, Release, distributed_lock};
use lockattr_tests::capture_events;
use tokio::time::{Instant, sleep};

use crate::support::{Fate, Scripted};

const SECOND: Duration = Duration::from_secs(1);

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

fn is_shut_down<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Lost { reason: LostReason::ShutDown, .. }))
}

/// Holds `job` until notified, and then for three more seconds of cleanup.
#[distributed_lock(key = "job", manager = &manager, ttl = ttl, on_lost = error, lease = lease)]
async fn tidy(manager: LockManager, ttl: Duration, diary: Diary) -> Result<(), Error> {
    lease.lost().await;
    diary.note("told");
    sleep(3 * SECOND).await;
    diary.note("tidied");
    Ok(())
}

#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<&'static str>>>);

impl Diary {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn read(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

/// Another manager acquires the lock when the body is done, and not before.
async fn bodies_then_releases(ttl: Duration) {
    let store = Arc::new(MemoryStore::new());
    let manager = || LockManager::builder().store(store.clone()).build().unwrap();
    let (ending, other, diary) = (manager(), manager(), Diary::default());
    let body = tokio::spawn(tidy(ending.clone(), ttl, diary.clone()));
    sleep(SECOND).await;
    let next = {
        let (other, diary) = (other.clone(), diary.clone());
        let long_wait = LockOptions::new().wait(60 * SECOND).retry_delay(SECOND / 100);
        tokio::spawn(async move {
            let guard = other.acquire("job", long_wait).await.unwrap();
            diary.note("next");
            guard.release().await
        })
    };
    let started = Instant::now();
    ending.shutdown().await;
    assert_eq!(started.elapsed().as_secs(), 3, "waited for the body only");
    assert!(is_shut_down(&body.await.unwrap()));
    next.await.unwrap().unwrap();
    assert_eq!(diary.read(), ["told", "tidied", "next"]);
    assert_eq!(other.holder("job").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_a_body_that_tidies_up_is_released_after_it_and_not_before() {
    bodies_then_releases(60 * SECOND).await;
}

/// The lease is shorter than the body needs, so it must be renewed meanwhile.
#[tokio::test(start_paused = true)]
async fn the_lock_of_a_body_that_tidies_up_for_longer_than_its_lease_is_kept_for_it() {
    bodies_then_releases(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn it_signals_waits_and_releases() {
    let manager = manager();
    let job = {
        let manager = manager.clone();
        tokio::spawn(async move {
            let body = async |_: &Lease| sleep(600 * SECOND).await;
            (manager.with_lock("job", LockOptions::new(), body).await, Instant::now())
        })
    };
    sleep(SECOND).await;
    let stubborn = manager.acquire("stubborn", LockOptions::new()).await.unwrap();
    let started = Instant::now();
    manager.shutdown().await;
    // The body stopped at once. The shutdown waited for the guard, then released its lock.
    assert_eq!(started.elapsed().as_secs(), 10);
    let (outcome, stopped) = job.await.unwrap();
    assert!(is_shut_down(&outcome) && stopped == started, "{outcome:?}");
    assert!(is_shut_down(&stubborn.ensure_held()));
    for key in ["job", "stubborn"] {
        assert_eq!(manager.holder(key).await.unwrap(), None);
    }
    let refused = manager.acquire("job", LockOptions::new()).await;
    assert!(matches!(refused, Err(Error::ShutDown { .. })));
    assert!(stubborn.release().await.is_err(), "there was nothing left to release");
}

/// A leaked guard is never dropped.
#[tokio::test(start_paused = true)]
async fn forgotten_guards_are_released_when_the_limit_is_over() {
    let events = capture_events();
    let store = Scripted::new();
    let limit = LockManager::builder().store(store.clone()).shutdown_timeout(2 * SECOND);
    let manager = limit.build().unwrap();
    for n in 0..100 {
        let long = LockOptions::new().ttl(3600 * SECOND);
        std::mem::forget(manager.acquire(n.to_string(), long).await.unwrap());
    }
    let started = Instant::now();
    manager.shutdown().await;
    assert_eq!(started.elapsed().as_secs(), 2);
    for n in 0..100 {
        assert_eq!(manager.holder(n.to_string()).await.unwrap(), None);
    }
    assert_eq!(store.calls().releases, [100], "in one batch");
    assert_eq!(events.count("released locks whose holders did not stop lockattr.count=100"), 1);
    assert_eq!(events.all().len(), 1, "{:?}", events.all());
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_is_notified_with_the_call_around_it_and_the_lock_is_released_once() {
    let store = Scripted::new();
    let manager = store.manager();
    let diary = Diary::default();
    let job = {
        let (manager, diary) = (manager.clone(), diary.clone());
        tokio::spawn(async move {
            let options = LockOptions::new;
            let outer = async |_: &Lease| {
                let inner = async |_: &Lease| sleep(600 * SECOND).await;
                let nested = manager.with_lock("job", options(), inner).await;
                diary.note(if is_shut_down(&nested) {
                    "inner notified"
                } else {
                    "inner continued"
                });
                std::future::pending::<()>().await;
            };
            manager.with_lock("job", options(), outer).await
        })
    };
    sleep(SECOND).await;
    let started = Instant::now();
    manager.shutdown().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(is_shut_down(&job.await.unwrap()));
    // The outer body was dropped before the inner one could report to it.
    assert_eq!(diary.read(), Vec::<&str>::new());
    assert_eq!(store.calls().releases, [1]);
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_releases_that_are_under_way() {
    let store = Scripted::new();
    let manager = store.manager();
    store.releases(&[Fate::Late(SECOND)]);
    let long = LockOptions::new().ttl(60 * SECOND);
    drop(manager.acquire("a", long.clone()).await.unwrap());
    let background = long.release(Release::Background);
    manager.with_lock("b", background, async |_| ()).await.unwrap();
    let started = Instant::now();
    manager.shutdown().await;
    assert_eq!(started.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn with_nothing_held_it_takes_no_time() {
    let started = Instant::now();
    manager().shutdown().await;
    let used = manager();
    drop(used.acquire("job", LockOptions::new()).await.unwrap());
    used.shutdown().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
}
