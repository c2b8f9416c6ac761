//! Locks that several clients hold together: which modes enter together, and which wait behind
//! others.

use lockattr::Mode;
use lockattr_tests::{RedisServer, in_time, node};

use super::killed::held;
use super::*;

fn shared() -> LockOptions {
    LockOptions::new().mode(Mode::Shared)
}

/// A waiter of its own manager, once it is the `place`th in the queue.
async fn waiter(server: &RedisServer, options: LockOptions, place: usize) -> JoinHandle<LockGuard> {
    let manager = manager(server, LONG).await;
    let waiter = tokio::spawn(async move { manager.acquire("a", options).await.unwrap() });
    wait_until_queued(&server.cli().await, place).await;
    waiter
}

async fn granted(waiter: JoinHandle<LockGuard>) -> LockGuard {
    in_time(waiter).await.unwrap()
}

#[tokio::test]
async fn readers_at_the_head_of_the_queue_enter_together() {
    let server = RedisServer::start().await;
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let mut readers = Vec::new();
    for place in 1..=3 {
        readers.push(waiter(&server, shared(), place).await);
    }
    let writer = waiter(&server, LockOptions::new(), 4).await;
    let late = waiter(&server, shared(), 5).await;
    let cli = server.cli().await;
    holder.release().await.unwrap();
    // All at once, not each at its next recheck.
    assert_eq!(queued(&cli, "a").await, 2, "the writer, and the readers after it");
    let mut inside = Vec::new();
    for reader in readers {
        inside.push(granted(reader).await);
    }
    let mut tokens: Vec<_> = inside.iter().map(|guard| guard.fencing_token()).collect();
    tokens.dedup();
    assert!(tokens.len() == 3 && tokens.is_sorted(), "{tokens:?}");
    for guard in inside {
        assert!(!writer.is_finished() && !late.is_finished());
        guard.ensure_held().unwrap();
        guard.release().await.unwrap();
    }
    granted(writer).await.release().await.unwrap();
    granted(late).await.release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}

/// Neither by a reader that waits nor by one that asks only once.
#[tokio::test]
async fn a_writer_in_the_queue_is_not_overtaken_by_readers_that_come_later() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let first = manager(&server, LONG).await;
    let reader = first.acquire("a", shared()).await.unwrap();
    let writer = waiter(&server, LockOptions::new(), 1).await;
    let late = waiter(&server, shared(), 2).await;
    let hasty = manager(&server, LONG).await;
    assert!(hasty.try_acquire("a", shared()).await.unwrap().is_none());
    let locked: usize = cli.query(&["ZCARD", "lock:a"]).await;
    assert_eq!(locked, 1, "the first reader alone");
    reader.release().await.unwrap();
    let writer = granted(writer).await;
    assert_eq!(queued(&cli, "a").await, 1);
    writer.release().await.unwrap();
    granted(late).await.release().await.unwrap();
    drop((first, hasty));
    assert_no_trace(&server).await;
}

#[tokio::test]
async fn a_released_permit_goes_to_the_head_of_the_queue() {
    let server = RedisServer::start().await;
    let (cli, two) = (server.cli().await, LockOptions::new().permits(2));
    let first = manager(&server, LONG).await;
    let one = first.acquire("a", two.clone()).await.unwrap();
    let other = first.acquire("a", two.clone()).await.unwrap();
    let mut waiting = Vec::new();
    for place in 1..=3 {
        waiting.push(waiter(&server, two.clone(), place).await);
    }
    let mut inside = vec![one, other];
    for (waiter, left) in waiting.into_iter().zip([2, 1, 0]) {
        inside.remove(0).release().await.unwrap();
        // By the release itself: the waiter would ask again, but later.
        assert_eq!(queued(&cli, "a").await, left);
        let taken: usize = cli.query(&["ZCARD", "lock:a"]).await;
        assert_eq!(taken, 2);
        inside.push(granted(waiter).await);
    }
    for guard in inside {
        guard.release().await.unwrap();
    }
    drop(first);
    assert_no_trace(&server).await;
}

#[tokio::test]
async fn a_holder_of_a_permit_that_was_killed_frees_its_own_after_its_ttl_and_no_more() {
    let server = RedisServer::start().await;
    let (cli, two) = (server.cli().await, LockOptions::new().permits(2));
    let first = manager(&server, LONG).await;
    let mut dead = node!("lock", url = server.url_with(LONG));
    dead.say("permit a 2").await;
    held(&mut dead).await;
    let stays = first.acquire("a", two.clone()).await.unwrap();
    let next = waiter(&server, two.clone(), 1).await;
    let behind = waiter(&server, two, 2).await;
    dead.kill();
    cli.end_lease("lock:a", &format!("pid={}", dead.id())).await;
    let next = granted(next).await;
    assert_eq!(queued(&cli, "a").await, 1, "one permit, and so one more holder");
    assert!(!behind.is_finished());
    stays.ensure_held().unwrap();
    next.release().await.unwrap();
    granted(behind).await.release().await.unwrap();
    stays.release().await.expect("it held its own permit throughout");
    drop(first);
    assert_no_trace(&server).await;
}

#[tokio::test]
async fn a_reader_that_was_killed_is_waited_for_until_its_ttl_ends_and_no_longer() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let first = manager(&server, LONG).await;
    let mut dead = node!("lock", url = server.url_with(LONG));
    dead.say("share a").await;
    held(&mut dead).await;
    let reader = first.acquire("a", shared()).await.unwrap();
    let writer = waiter(&server, LockOptions::new(), 1).await;
    dead.kill();
    reader.release().await.unwrap();
    assert_eq!(
        cli.query::<usize>(&["ZCARD", "lock:a"]).await,
        1,
        "a killed process cannot release"
    );
    assert!(!writer.is_finished());
    cli.end_lease("lock:a", "").await;
    granted(writer).await.release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}
