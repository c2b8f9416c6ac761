//! The attribute on functions that return a stream: the lock is held from the first poll to the
//! end.

mod dropped;
mod over_redis;
mod shapes;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use lockattr::{Error, LockManager, LockOptions, distributed_lock};
use lockattr_tests::{capture_events, capture_events_from};
use tokio::time::{sleep, timeout};
use tracing::Level;

use crate::support::{Fate, Scripted};

const SECOND: Duration = Duration::from_secs(1);

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

async fn is_free(manager: &LockManager) -> bool {
    manager.holder("report").await.unwrap().is_none()
}

#[distributed_lock(key = "report", manager = manager, ttl = "2s", wait = "0s")]
fn rows(manager: &LockManager, count: u32) -> impl Stream<Item = Result<u32, Error>> {
    stream::iter(0..count).then(async |row| {
        sleep(SECOND).await;
        assert!(!is_free(manager).await);
        Ok(row)
    })
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_held_from_the_first_poll_until_the_stream_ends() {
    let store = Scripted::new();
    store.releases(&[Fate::Slow(SECOND)]);
    let manager = store.manager();
    let mut rows = pin!(rows(&manager, 3));
    assert!(is_free(&manager).await, "it was locked before the first poll");
    assert_eq!(rows.next().await.unwrap().unwrap(), 0);
    // A slow consumer: the lease is renewed meanwhile.
    sleep(60 * SECOND).await;
    assert!(!is_free(&manager).await);
    assert_eq!(rows.next().await.unwrap().unwrap(), 1);
    assert_eq!(rows.next().await.unwrap().unwrap(), 2);
    assert!(rows.next().await.is_none());
    assert!(is_free(&manager).await);
    // Polling again after the end is allowed.
    assert!(rows.next().await.is_none());
}

/// Red without: the guard in the stream, dropped with it.
#[tokio::test(start_paused = true)]
async fn a_stream_dropped_half_way_releases_its_lock() {
    let manager = manager();
    let mut rows = Box::pin(rows(&manager, 3));
    assert_eq!(rows.next().await.unwrap().unwrap(), 0);
    drop(rows);
    let released = lockattr_tests::eventually("released", async || is_free(&manager).await);
    timeout(SECOND, released).await.expect("before its lease ends");
}

#[tokio::test(start_paused = true)]
async fn a_lock_error_is_the_only_item() {
    let manager = manager();
    let held = manager.acquire("report", LockOptions::new()).await.unwrap();
    let items: Vec<_> = rows(&manager, 3).collect().await;
    assert!(matches!(&items[..], [Err(Error::Contended { .. })]), "{items:?}");
    held.release().await.unwrap();
    assert_eq!(rows(&manager, 3).count().await, 3);
}

/// Counts its drops.
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Yields four items, one a second, under a lease of 2.5 seconds.
macro_rules! overrun {
    ($name:ident, $on_lost:ident) => {
        #[distributed_lock(
            key = "report", manager = manager, ttl = "2500ms", renew = false, on_lost = $on_lost
        )]
        fn $name(
            manager: &LockManager,
            dropped: Arc<AtomicU32>,
        ) -> impl Stream<Item = Result<u32, Error>> {
            let dropped = Dropped(dropped);
            stream::iter(0..4).then(move |row| {
                let _dropped = &dropped;
                async move {
                    sleep(SECOND).await;
                    Ok(row)
                }
            })
        }
    };
}

overrun!(cancelled, cancel);
overrun!(told, error);
overrun!(ignored, ignore);

fn shown(items: &[Result<u32, Error>]) -> String {
    let show = |item: &Result<u32, Error>| match item {
        Ok(row) => row.to_string(),
        Err(Error::Lost { .. }) => "lost".into(),
        Err(error) => panic!("{error}"),
    };
    items.iter().map(show).collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_ends_the_stream_at_once_or_is_reported_after_it_or_not_at_all() {
    let manager = manager();
    let dropped = Arc::<AtomicU32>::default();
    let mut stream = Box::pin(cancelled(&manager, dropped.clone()));
    let mut items = Vec::new();
    while let Some(item) = stream.next().await {
        if item.is_err() {
            assert_eq!(dropped.load(Ordering::SeqCst), 1, "it continues after the loss");
        }
        items.push(item);
    }
    assert_eq!(shown(&items), "0 1 lost");
    let items: Vec<_> = told(&manager, dropped.clone()).collect().await;
    assert_eq!(shown(&items), "0 1 2 3 lost");
    let events = capture_events_from(Level::DEBUG);
    let items: Vec<_> = ignored(&manager, dropped.clone()).collect().await;
    assert_eq!(shown(&items), "0 1 2 3");
    assert_eq!(events.count("was lost while the body ran; ignored"), 1);
    assert!(is_free(&manager).await);
}

/// A consumer that slept past the deadline gets no further item of the lost hold.
#[tokio::test(start_paused = true)]
async fn a_lease_that_ended_between_two_polls_is_reported_at_the_next() {
    let manager = manager();
    let dropped = Arc::<AtomicU32>::default();
    let mut stream = Box::pin(cancelled(&manager, dropped.clone()));
    stream.next().await.unwrap().unwrap();
    sleep(3 * SECOND).await;
    assert!(matches!(stream.next().await, Some(Err(Error::Lost { .. }))));
    assert!(stream.next().await.is_none());
}

#[distributed_lock(key = "report", wait = "0s", manager = manager)]
async fn nested(manager: &LockManager) -> Result<u32, Error> {
    Ok(lockattr::current().map_or(0, |lease| lease.depth()))
}

#[distributed_lock(key = "report", manager = manager)]
fn depths(manager: &LockManager) -> impl Stream<Item = Result<u32, Error>> {
    let here = lockattr::current().map_or(0, |lease| lease.depth());
    stream::once(async move { Ok(here) }).chain(stream::once(nested(manager)))
}

#[tokio::test]
async fn calls_of_the_stream_are_nested_in_it_and_calls_of_its_consumer_are_not() {
    let manager = manager();
    let mut depths = pin!(depths(&manager));
    assert_eq!(depths.next().await.unwrap().unwrap(), 1);
    assert!(lockattr::current().is_none());
    assert!(matches!(nested(&manager).await, Err(Error::Contended { .. })));
    assert_eq!(depths.next().await.unwrap().unwrap(), 2);
    assert!(depths.next().await.is_none());
}

#[distributed_lock(key = "report", manager = manager, on_busy = skip, wait = "0s")]
fn skipped(manager: &LockManager) -> impl Stream<Item = Result<u32, Error>> {
    stream::iter([Ok(7)])
}

#[distributed_lock(key = "report", manager = manager, on_busy = skip, wait = "0s")]
fn ticks(manager: &LockManager) -> impl Stream<Item = u32> {
    stream::iter([7])
}

#[distributed_lock(
    key = "report", manager = manager, wait = "0s", on_busy = return(stream::iter([Ok(first)]))
)]
fn instead(manager: &LockManager, first: u32) -> impl Stream<Item = Result<u32, Error>> {
    stream::iter([Ok(first), Ok(first + 1)])
}

#[tokio::test]
async fn a_busy_stream_is_empty_or_the_other_value_and_an_outage_is_an_error_item() {
    let store = Scripted::new();
    let manager = store.manager();
    assert_eq!(ticks(&manager).collect::<Vec<_>>().await, [7]);
    assert_eq!(skipped(&manager).count().await, 1);
    assert_eq!(instead(&manager, 7).count().await, 2);
    let held = manager.acquire("report", LockOptions::new()).await.unwrap();
    assert_eq!(ticks(&manager).count().await, 0);
    assert_eq!(skipped(&manager).count().await, 0);
    assert_eq!(instead(&manager, 7).map(Result::unwrap).collect::<Vec<_>>().await, [7]);
    held.release().await.unwrap();

    store.acquires(&[Fate::Refused]);
    let items: Vec<_> = skipped(&manager).collect().await;
    assert!(matches!(&items[..], [Err(Error::Store { .. })]), "{items:?}");
    let events = capture_events();
    assert_eq!(ticks(&manager).count().await, 0);
    assert_eq!(events.count("the stream ended, because the lock was refused"), 1);
}
