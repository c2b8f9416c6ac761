//! Readers that a writer of their process has let in make the lock a shared one for all processes:
//! at once if no writer waits behind them, and otherwise after a short time.

use std::mem::forget;
use std::sync::{Arc, mpsc};

use futures_util::poll;
use lockattr::store::MemoryStore;
use lockattr::{LockGuard, LockManager, LockOptions, Mode};
use lockattr_tests::in_time;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

use super::{MS, SECOND, acquired_by, long_wait, on, settle, spawn_acquire};
use crate::support::{Fate, Scripted};

/// A writer with two readers behind it, which get the lock when the writer releases it.
async fn two_readers(manager: &LockManager) -> [LockGuard; 2] {
    let writer = manager.acquire("a", long_wait()).await.unwrap();
    let readers = [spawn_acquire(manager, reads()).await, spawn_acquire(manager, reads()).await];
    writer.release().await.unwrap();
    let [one, two] = readers;
    [acquired_by(one).await.0, acquired_by(two).await.0]
}

fn reads() -> LockOptions {
    long_wait().mode(Mode::Shared)
}

#[tokio::test(start_paused = true)]
async fn readers_that_no_writer_waits_behind_share_the_lock_with_other_processes() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let inside = two_readers(&here).await;
    settle().await;
    let other = there.try_acquire("a", reads()).await.unwrap().expect("it can be shared");
    let late = here.try_acquire("a", reads()).await.unwrap().expect("it can be shared");
    let tokens = [&inside[0], &inside[1], &other, &late].map(|reader| reader.fencing_token());
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    let held = here.held_locks().await.unwrap();
    assert_eq!((held.len(), held[0].shared, held[0].holders), (1, true, 3));

    let writer = spawn_acquire(&there, long_wait()).await;
    let behind = spawn_acquire(&here, reads()).await;
    sleep(60 * SECOND).await;
    assert!(!writer.is_finished() && !behind.is_finished());
    drop((other, late));
    let [one, two] = inside;
    drop(one);
    sleep(60 * SECOND).await;
    assert!(!writer.is_finished());
    two.ensure_held().unwrap();
    two.release().await.unwrap();
    let writer = acquired_by(writer).await.0;
    settle().await;
    assert!(!behind.is_finished());
    writer.release().await.unwrap();
    drop(acquired_by(behind).await);
    settle().await;
    assert_eq!(here.holder("a").await.unwrap(), None);
}

/// The store learns late that the lock is shared, or does not answer. Meanwhile the lease is
/// renewed for its readers, and readers of other processes wait at most until the next renewal.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_makes_the_lock_a_shared_one_later() {
    for fates in [
        [Fate::Refused, Fate::Refused, Fate::Answered],
        [Fate::ReplyLost, Fate::ReplyLost, Fate::Answered],
        [Fate::Hangs, Fate::Refused, Fate::Answered],
        [Fate::Late(2 * SECOND), Fate::Refused, Fate::Answered],
    ] {
        let store = Scripted::new();
        let (here, there) = (store.manager(), on(&store).build().unwrap());
        store.renewals(&fates);
        let inside = two_readers(&here).await;
        let began = Instant::now();
        let other = acquired_by(spawn_acquire(&there, reads()).await).await.0;
        assert!(began.elapsed() < 10 * SECOND, "{fates:?}: {:?}", began.elapsed());
        sleep(60 * SECOND).await;
        inside.iter().for_each(|reader| reader.ensure_held().unwrap());
        drop((inside, other));
        settle().await;
        assert_eq!(here.holder("a").await.unwrap(), None, "{fates:?}");
    }
}

/// The readers are gone before the store learns that they share the lock.
///
/// Red without: a release with the value under which the store knows the claim.
#[tokio::test(start_paused = true)]
async fn readers_that_leave_at_once_leave_nothing() {
    for fate in [Fate::Slow(SECOND), Fate::Late(SECOND), Fate::Refused, Fate::Answered] {
        let store = Scripted::new();
        let (here, there) = (store.manager(), on(&store).build().unwrap());
        store.renewals(&[fate]);
        let inside = two_readers(&here).await;
        let writer = spawn_acquire(&there, long_wait()).await;
        drop(inside);
        settle().await;
        let writer = acquired_by(writer).await.0;
        sleep(2 * SECOND).await;
        writer.ensure_held().unwrap();
        writer.release().await.unwrap();
        assert_eq!(here.holder("a").await.unwrap(), None, "{fate:?}");
    }
}

/// The writer behind them then waits in the store's queue, after those that came before it.
#[tokio::test(start_paused = true)]
async fn readers_that_stay_share_the_lock_although_a_writer_waits() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let first = here.acquire("a", long_wait()).await.unwrap();
    let stays = spawn_acquire(&here, reads()).await;
    let writer = spawn_acquire(&here, long_wait()).await;
    first.release().await.unwrap();
    let stays = acquired_by(stays).await.0;
    let other = spawn_acquire(&there, reads()).await;
    let other = timeout(100 * MS, acquired_by(other)).await.expect("it cannot acquire").0;
    let behind = spawn_acquire(&there, reads()).await;
    sleep(60 * SECOND).await;
    assert!(!writer.is_finished() && !behind.is_finished());
    stays.ensure_held().unwrap();
    assert!(there.try_acquire("a", reads()).await.unwrap().is_none(), "it overtakes the writer");
    drop((stays, other));
    let writer = acquired_by(writer).await.0;
    settle().await;
    assert!(!behind.is_finished());
    drop(writer);
    drop(acquired_by(behind).await);
    settle().await;
    assert_eq!(here.holder("a").await.unwrap(), None);
}

/// A writer whose future is not polled keeps other processes out no longer than one that waits.
#[tokio::test(start_paused = true)]
async fn readers_share_the_lock_although_a_writer_is_not_polled_any_more() {
    for is_forgotten in [false, true] {
        let store = Scripted::new();
        let (here, there) = (store.manager(), on(&store).build().unwrap());
        let first = here.acquire("a", long_wait()).await.unwrap();
        let stays = spawn_acquire(&here, reads()).await;
        let mut frozen = Box::pin(here.acquire("a", long_wait()));
        assert!(poll!(&mut frozen).is_pending());
        first.release().await.unwrap();
        let stays = acquired_by(stays).await.0;
        if is_forgotten {
            forget(frozen);
        }
        let other = spawn_acquire(&there, reads()).await;
        let other = timeout(100 * MS, acquired_by(other)).await.expect("it cannot acquire").0;
        stays.ensure_held().unwrap();
        drop((stays, other));
        settle().await;
    }
}

/// The writer that lets readers in may compute for a long time afterwards and so block its runtime.
/// The manager may also be dropped as soon as the reader has its lock.
#[test]
fn readers_share_the_lock_although_the_writer_before_them_computes() {
    // Only in some rounds is the manager gone just when the readers are let in.
    for is_gone in (0..200).map(|n| n % 2 == 0) {
        let store = Arc::new(MemoryStore::new());
        // No lease ends by itself.
        let builder = || LockManager::builder().store(store.clone()).ttl(600 * SECOND);
        let (here, there) = (builder().build().unwrap(), builder().build().unwrap());
        let _stays = (!is_gone).then(|| here.clone());
        let own = Builder::new_current_thread().enable_all().build().unwrap();
        let writer = own.block_on(here.acquire("a", long_wait())).unwrap();
        let others = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (sender, receiver) = mpsc::channel();
        let reader = others.spawn(async move {
            let reader = spawn_acquire(&here, reads()).await;
            drop(here);
            sender.send(()).unwrap();
            acquired_by(reader).await.0
        });
        receiver.recv().unwrap();
        own.block_on(writer.release()).unwrap();
        // From here on, the runtime `own` is not driven.
        others.block_on(async {
            let other = in_time(there.acquire("a", reads())).await.unwrap();
            let reader = reader.await.unwrap();
            reader.ensure_held().unwrap();
            drop((reader, other));
        });
    }
}
