//! A stream is dropped inside its hold, where it was polled.

use std::pin::pin;
use std::sync::mpsc::{Sender, channel};

use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use lockattr::{Error, LockManager, assert_held, distributed_lock};
use lockattr_tests::eventually;
use tokio::time::timeout;

use super::{SECOND, is_free, manager};

/// Writes under the lock when it is dropped, after the rows were read or the reader went away.
struct Closing {
    manager: LockManager,
    closed: Sender<Result<u32, Error>>,
}

#[distributed_lock(key = "report", manager = manager, wait = "0s")]
fn close(manager: &LockManager) -> Result<u32, Error> {
    Ok(lockattr::current().map_or(0, |lease| lease.depth()))
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.closed.send(close(&self.manager)).unwrap();
        assert_held!("report", "as it was while the rows were read");
    }
}

#[distributed_lock(key = "report", manager = &closing.manager)]
fn rows(closing: Closing) -> impl Stream<Item = Result<u32, Error>> {
    read(closing)
}

fn read(closing: Closing) -> impl Stream<Item = Result<u32, Error>> + Send {
    stream::iter(0..2).map(move |row| {
        let _ = &closing;
        Ok(row)
    })
}

#[tokio::test(start_paused = true)]
async fn destructors_of_a_stream_dropped_half_way_run_under_its_lock() {
    let (manager, (closed, closings)) = (manager(), channel());
    let mut rows = Box::pin(rows(Closing { manager: manager.clone(), closed }));
    assert_eq!(rows.next().await.unwrap().unwrap(), 0);
    drop(rows);
    assert_eq!(closings.recv().unwrap().unwrap(), 2, "entered again");
    assert!(lockattr::current().is_none());
    let released = eventually("released", async || is_free(&manager).await);
    timeout(SECOND, released).await.expect("before its lease ends");
}

#[tokio::test]
async fn destructors_of_a_stream_that_has_ended_run_under_its_lock() {
    let (manager, (closed, closings)) = (manager(), channel());
    let mut rows = pin!(rows(Closing { manager: manager.clone(), closed }));
    for row in 0..2 {
        assert_eq!(rows.next().await.unwrap().unwrap(), row);
        assert!(closings.try_recv().is_err(), "closed too early");
    }
    assert!(rows.next().await.is_none());
    assert_eq!(closings.try_recv().unwrap().unwrap(), 2, "entered again");
    assert!(is_free(&manager).await);
}

#[distributed_lock(
    key = "report", manager = &closing.manager, ttl = "1s", renew = false, on_lost = cancel
)]
fn overrun(closing: Closing) -> BoxStream<'static, Result<u32, Error>> {
    read(closing).boxed()
}

/// The drop sees that the lock is lost, rather than no lock. Red without: `drop_inside` when the
/// stream has ended, as after a lost lease.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cancelled_is_dropped_inside_the_lost_hold() {
    let (manager, (closed, closings)) = (manager(), channel());
    let mut rows = overrun(Closing { manager: manager.clone(), closed });
    assert_eq!(rows.next().await.unwrap().unwrap(), 0);
    tokio::time::sleep(2 * SECOND).await;
    assert!(matches!(rows.next().await, Some(Err(Error::Lost { .. }))));
    let closing = closings.try_recv().unwrap();
    assert!(matches!(closing, Err(Error::Lost { .. })), "{closing:?}");
    assert!(rows.next().await.is_none());
    assert!(is_free(&manager).await);
}
