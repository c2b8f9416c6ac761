//! Repeated shutdowns: in sequence, concurrent, on clones, and dropped half-way.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

use super::{Diary, SECOND, is_shut_down, manager, tidy};
use crate::support::{Fate, Scripted};

async fn free(manager: &LockManager) -> bool {
    manager.holder("job").await.unwrap().is_none()
}

#[tokio::test(start_paused = true)]
async fn a_second_one_takes_no_time_and_does_no_harm() {
    let manager = manager();
    let body = tokio::spawn(tidy(manager.clone(), 60 * SECOND, Diary::default()));
    sleep(SECOND).await;
    manager.shutdown().await;
    assert!(free(&manager).await);
    let started = Instant::now();
    manager.shutdown().await;
    manager.clone().shutdown().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(is_shut_down(&body.await.unwrap()));
    let refused = manager.try_acquire("job", LockOptions::new()).await;
    assert!(matches!(refused, Err(Error::ShutDown { .. })));
}

#[tokio::test(start_paused = true)]
async fn of_two_at_once_both_return_after_everything_is_released() {
    for later in [Duration::ZERO, SECOND, 3 * SECOND] {
        let manager = manager();
        let body = tokio::spawn(tidy(manager.clone(), 60 * SECOND, Diary::default()));
        sleep(SECOND).await;
        let shutdown = |after| {
            let manager = manager.clone();
            tokio::spawn(async move {
                sleep(after).await;
                manager.shutdown().await;
                free(&manager).await
            })
        };
        let started = Instant::now();
        let both = [shutdown(Duration::ZERO), shutdown(later)];
        for done in both {
            assert!(done.await.unwrap(), "returned with a lock still held");
        }
        assert_eq!(started.elapsed().as_secs(), 3);
        assert!(is_shut_down(&body.await.unwrap()));
    }
}

/// A shutdown whose wait budget ended still stops granting, and the next one finishes it.
#[tokio::test(start_paused = true)]
async fn a_shutdown_dropped_while_it_waits_for_bodies_is_continued_by_the_next() {
    let (manager, diary) = (manager(), Diary::default());
    let body = tokio::spawn(tidy(manager.clone(), 60 * SECOND, diary.clone()));
    sleep(SECOND).await;
    let started = Instant::now();
    timeout(SECOND, manager.shutdown()).await.expect_err("the body needs longer");
    assert_eq!(diary.read(), ["told"]);
    let refused = manager.acquire("other", LockOptions::new()).await;
    assert!(matches!(refused, Err(Error::ShutDown { .. })));
    manager.clone().shutdown().await;
    assert_eq!(started.elapsed().as_secs(), 3);
    assert!(free(&manager).await);
    assert!(is_shut_down(&body.await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_dropped_while_it_releases_is_continued_by_the_next() {
    let store = Scripted::new();
    let builder = LockManager::builder().store(store.clone()).shutdown_timeout(2 * SECOND);
    let manager = builder.build().unwrap();
    let long = LockOptions::new().ttl(3600 * SECOND);
    std::mem::forget(manager.acquire("job", long).await.unwrap());
    store.releases(&[Fate::Refused, Fate::Late(SECOND), Fate::Answered]);
    let started = Instant::now();
    // Two seconds for the holder; then the store is slow.
    let half_way = Duration::from_millis(2_010);
    timeout(half_way, manager.shutdown()).await.expect_err("the store needs longer");
    assert!(!free(&manager).await);
    manager.shutdown().await;
    assert!(free(&manager).await, "after {:?}", started.elapsed());
}

/// A runtime that is not driven has nothing of this manager to wait for.
#[test]
fn an_undriven_runtime_does_not_delay_a_shutdown() {
    let runtime =
        || Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (still, driven) = (runtime(), runtime());
    let manager = manager();
    still.block_on(async {
        manager.acquire("job", LockOptions::new()).await.unwrap().release().await.unwrap();
    });
    driven.block_on(async {
        let started = Instant::now();
        manager.shutdown().await;
        assert_eq!(started.elapsed(), Duration::ZERO);
        assert!(free(&manager).await);
    });
}
