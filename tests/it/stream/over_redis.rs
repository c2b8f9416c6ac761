//! Streams whose lock is in Redis.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream::{self, Stream, StreamExt};
use lockattr::{Error, LockManager, distributed_lock};
use lockattr_tests::{RedisServer, assert_nothing_left};
use tokio::task::yield_now;

#[distributed_lock(key = "export", manager = &manager, wait = "60s")]
fn export(
    manager: LockManager,
    inside: &'static AtomicUsize,
) -> impl Stream<Item = Result<usize, Error>> + Send {
    stream::iter(0..10).then(async |row| {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two streams at once");
        yield_now().await;
        inside.fetch_sub(1, Ordering::SeqCst);
        Ok(row)
    })
}

#[tokio::test]
async fn streams_take_turns_and_leave_nothing_however_they_end() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    let server = RedisServer::start().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let mut exports = tokio::task::JoinSet::new();
    for n in 0..20 {
        let export = export(manager.clone(), &INSIDE);
        // Every other consumer stops after three rows.
        let rows = if n % 2 == 0 { 10 } else { 3 };
        exports.spawn(export.take(rows).map(Result::unwrap).count());
    }
    assert_eq!(exports.join_all().await.into_iter().sum::<usize>(), 130);
    assert_nothing_left(&server).await;
}
