//! Readers of one process share the lease of a writer. The lease stays exclusive while another
//! writer waits behind them, and meanwhile the store is not asked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions, LostReason, Mode};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, in_time};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::{MS, Order, PendingAcquire, SECOND, acquired_by, long_wait, on, settle, spawn_acquire};
use crate::support::{Fate, Scripted};

const TTL: Duration = Duration::from_secs(10);

/// Shorter than the time for which the lease stays exclusive.
const SHORT: Duration = Duration::from_millis(5);

fn reads() -> LockOptions {
    writes().mode(Mode::Shared)
}

fn writes() -> LockOptions {
    long_wait().ttl(TTL)
}

async fn all<const N: usize>(readers: [PendingAcquire; N]) -> [LockGuard; N] {
    let mut guards = Vec::new();
    for reader in readers {
        guards.push(acquired_by(reader).await.0);
    }
    guards.try_into().unwrap()
}

/// A writer with `N` readers behind it, which get the lock when the writer releases it.
async fn inside<const N: usize>(manager: &LockManager) -> [LockGuard; N] {
    let writer = manager.acquire("a", writes()).await.unwrap();
    let mut readers = Vec::new();
    for _ in 0..N {
        readers.push(spawn_acquire(manager, reads()).await);
    }
    writer.release().await.unwrap();
    all(readers.try_into().unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn readers_behind_a_writer_get_in_together_and_the_next_writer_after_them() {
    let store = Scripted::new();
    let manager = store.manager();
    let first = manager.acquire("a", writes()).await.unwrap();
    let mut tokens = vec![first.fencing_token()];
    let readers = [(); 3].map(|()| spawn_acquire(&manager, reads()));
    let [one, two, three] = readers;
    let readers = [one.await, two.await, three.await];
    let writer = spawn_acquire(&manager, writes()).await;
    let late = spawn_acquire(&manager, reads()).await;
    let released = Instant::now();
    first.release().await.unwrap();
    let readers = all(readers).await;
    assert_eq!(released.elapsed(), Duration::ZERO, "at once");
    tokens.extend(readers.iter().map(|reader| reader.fencing_token()));
    for reader in readers {
        sleep(SHORT).await;
        assert!(!writer.is_finished() && !late.is_finished());
        reader.ensure_held().unwrap();
        reader.release().await.unwrap();
    }
    let writer = acquired_by(writer).await.0;
    tokens.push(writer.fencing_token());
    settle().await;
    assert!(!late.is_finished());
    writer.release().await.unwrap();
    let late = acquired_by(late).await.0;
    tokens.push(late.fencing_token());
    late.release().await.unwrap();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    let calls = store.calls();
    assert_eq!((calls.acquires, calls.releases), (1, vec![1]));
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// A waiting writer is not overtaken, neither by a new reader nor by a caller that asks only once.
#[tokio::test(start_paused = true)]
async fn behind_a_writer_no_other_gets_in() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let first = here.acquire("a", writes()).await.unwrap();
    let reader = spawn_acquire(&here, reads()).await;
    let writer = spawn_acquire(&here, writes()).await;
    first.release().await.unwrap();
    let reader = acquired_by(reader).await.0;
    let late = spawn_acquire(&here, reads()).await;
    sleep(SHORT).await;
    for manager in [&here, &there] {
        assert!(manager.try_acquire("a", reads()).await.unwrap().is_none());
    }
    assert!(!late.is_finished() && !writer.is_finished());
    drop(reader);
    let writer = acquired_by(writer).await.0;
    settle().await;
    assert!(!late.is_finished());
    drop(writer);
    acquired_by(late).await.0.release().await.unwrap();
    assert_eq!(store.calls().acquires, 3, "the first, and the calls without a wait");
    assert_eq!(here.holder("a").await.unwrap(), None);
}

/// The last waiting writer gives up, or its future is dropped: no other reader is blocked any more,
/// in this process or another.
#[tokio::test(start_paused = true)]
async fn readers_behind_a_writer_that_gives_up_get_in() {
    for is_dropped in [false, true] {
        let store = Scripted::new();
        let (here, there) = (store.manager(), on(&store).build().unwrap());
        let first = here.acquire("a", writes()).await.unwrap();
        let stays = spawn_acquire(&here, reads()).await;
        let writer = spawn_acquire(&here, writes().wait(2 * SHORT)).await;
        first.release().await.unwrap();
        let stays = acquired_by(stays).await.0;
        let readers = [spawn_acquire(&here, reads()).await, spawn_acquire(&here, reads()).await];
        let other = spawn_acquire(&there, reads()).await;
        sleep(SHORT).await;
        assert!(!other.is_finished() && readers.iter().all(|reader| !reader.is_finished()));
        let began = Instant::now();
        match is_dropped {
            true => writer.abort(),
            false => assert!(writer.await.unwrap().0.is_err()),
        }
        let readers = all(readers).await;
        let other = acquired_by(other).await.0;
        assert!(began.elapsed() < 2 * SHORT, "{:?}", began.elapsed());
        sleep(3 * TTL).await;
        stays.ensure_held().unwrap();
        other.ensure_held().unwrap();
        drop((stays, readers));
        settle().await;
        assert_eq!(there.held_locks().await.unwrap()[0].holders, 1);
        drop(other);
        settle().await;
        assert_eq!(here.holder("a").await.unwrap(), None);
    }
}

/// Once another process asks for the lock, new local callers wait behind it. It waits for the
/// readers inside and for the writer that came before it, within the limits.
#[tokio::test(start_paused = true)]
async fn another_process_waits_for_those_before_it_and_for_no_others() {
    for mode in [Mode::Exclusive, Mode::Shared] {
        let store = Scripted::new();
        let limited = on(&store).max_handoffs(1).max_handoff_time(600 * SECOND);
        let (here, there) = (limited.build().unwrap(), on(&store).build().unwrap());
        let first = here.acquire("a", writes()).await.unwrap();
        let readers = [spawn_acquire(&here, reads()).await, spawn_acquire(&here, reads()).await];
        let writer = spawn_acquire(&here, writes()).await;
        first.release().await.unwrap();
        let readers = all(readers).await;
        let other = spawn_acquire(&there, writes().mode(mode)).await;
        let late = spawn_acquire(&here, reads()).await;
        sleep(SHORT).await;
        assert!(!other.is_finished() && !late.is_finished() && !writer.is_finished(), "{mode:?}");
        drop(readers);
        let writer = acquired_by(writer).await.0;
        sleep(SECOND).await;
        assert!(!other.is_finished() && !late.is_finished(), "{mode:?}");
        let last = writer.fencing_token();
        writer.release().await.unwrap();
        let other = acquired_by(other).await.0;
        assert!(other.fencing_token() > last);
        settle().await;
        assert_eq!(late.is_finished(), mode == Mode::Shared);
        other.release().await.unwrap();
        let late = acquired_by(late).await.0;
        assert!(late.fencing_token() > last);
        late.release().await.unwrap();
        assert_eq!(here.holder("a").await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_ends_all_its_holders() {
    let store = Scripted::new();
    let manager = store.manager();
    let readers: [_; 3] = inside(&manager).await;
    let next = spawn_acquire(&manager, writes()).await;
    store.restart();
    timeout(TTL, readers[0].lost()).await.expect("notified by the next renewal");
    // Also for readers that did not wait for the loss.
    assert!(readers.iter().all(|reader| reader.ensure_held().is_err()));
    let lost = futures_util::future::join_all(readers.iter().map(|reader| reader.lost()));
    timeout(TTL, lost).await.expect("notified by the next renewal");
    let began = Instant::now();
    // The next waiter does not wait until the readers have released.
    let next = acquired_by(next).await.0;
    assert!(began.elapsed() < SECOND);
    for reader in readers {
        assert!(next.fencing_token() > reader.fencing_token());
        let error = reader.release().await.unwrap_err();
        assert!(matches!(error, Error::Lost { reason: LostReason::Taken, .. }), "{error:?}");
    }
    next.ensure_held().unwrap();
    next.release().await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// Red without: the lease's own deadline in `Hold::valid_until`.
#[tokio::test(start_paused = true)]
async fn a_lease_that_no_process_can_renew_ends_for_all_at_its_deadline() {
    let store = Scripted::new();
    let manager = store.manager();
    let readers: [_; 2] = inside(&manager).await;
    store.renewals(&[Fate::Refused]);
    let began = Instant::now();
    for reader in &readers {
        timeout(TTL, reader.lost()).await.expect("it continues");
        assert!(reader.remaining().is_zero() && reader.ensure_held().is_err());
    }
    assert!(began.elapsed() < TTL);
    drop(readers);
}

/// A reader that extends its lease extends it for all readers.
///
/// Red without: the lease in `Hold::lengthen`, and in `Hold::renewed`.
#[tokio::test(start_paused = true)]
async fn a_reader_extends_the_lease_of_all() {
    let store = Scripted::new();
    let manager = store.manager();
    let [one, two] = inside(&manager).await;
    one.extend(100 * SECOND).await.unwrap();
    assert!(two.remaining() > 90 * SECOND);
    drop(one);
    sleep(200 * SECOND).await;
    assert!(two.remaining() > 50 * SECOND);
    two.release().await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// Readers that are gone, just before or just after the hand-off, block no process and leave
/// nothing.
///
/// Red without: `leave` in `into_held`; the release by the last reader that is gone.
#[tokio::test(start_paused = true)]
async fn readers_that_are_gone_delay_no_other() {
    let store = Scripted::new();
    let manager = store.manager();
    for gone in 0..8 {
        let writer = manager.acquire("a", writes()).await.unwrap();
        let readers = [(); 3].map(|()| spawn_acquire(&manager, reads()));
        let [one, two, three] = readers;
        let readers = [one.await, two.await, three.await];
        let next = spawn_acquire(&manager, writes()).await;
        // Handed off, and never polled again.
        drop(writer);
        for (n, reader) in readers.iter().enumerate() {
            if gone & (1 << n) != 0 {
                reader.abort();
            }
        }
        for (n, reader) in readers.into_iter().enumerate() {
            match gone & (1 << n) == 0 {
                true => drop(acquired_by(reader).await),
                false => assert!(reader.await.is_err()),
            }
        }
        acquired_by(next).await.0.release().await.unwrap();
    }
    settle().await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// Red without: the shutdown of the shared lease's hold.
#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_all_and_waits_for_the_last() {
    let store = Scripted::new();
    let other = store.manager();
    let manager = on(&store).shutdown_timeout(100 * SECOND).build().unwrap();
    let [one, two] = inside(&manager).await;
    let waits = spawn_acquire(&manager, writes()).await;
    let down = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.shutdown().await })
    };
    timeout(SECOND, one.lost()).await.unwrap();
    timeout(SECOND, two.lost()).await.unwrap();
    assert!(matches!(waits.await.unwrap().0, Err(Error::ShutDown { .. })));
    assert!(manager.try_acquire("a", reads()).await.is_err());
    drop(one);
    sleep(50 * SECOND).await;
    assert!(!down.is_finished());
    assert!(other.holder("a").await.unwrap().is_some(), "held for the one that is still inside");
    drop(two);
    timeout(SECOND, down).await.unwrap().unwrap();
    assert_eq!(other.holder("a").await.unwrap(), None);
}

/// A reader has no more than a shared lock, even though its lease is exclusive.
#[tokio::test(start_paused = true)]
async fn inside_a_reader_no_exclusive_call_enters() {
    let store = Scripted::new();
    let manager = store.manager();
    let [one, two] = inside(&manager).await;
    let refused = one.scope(manager.acquire("a", writes())).await;
    assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
    let nested = one.scope(manager.acquire("a", reads())).await.unwrap();
    assert_eq!((nested.depth(), nested.fencing_token()), (2, one.fencing_token()));
    drop((nested, two));
}

/// Options that would have to be kept apart from the shared lease.
///
/// Red without: each of the conditions in `HeldLease::fits`, and in `Together::fits`.
#[tokio::test(start_paused = true)]
async fn a_reader_with_other_options_asks_the_store() {
    let own = [
        reads().max_hold(60 * SECOND),
        reads().hold_at_least(MS),
        reads().renew(false),
        reads().ttl(60 * SECOND),
    ];
    for own in own {
        let store = Scripted::new();
        let manager = store.manager();
        let first = manager.acquire("a", writes()).await.unwrap();
        let reader = spawn_acquire(&manager, reads()).await;
        let waits = spawn_acquire(&manager, own.clone()).await;
        let behind = spawn_acquire(&manager, reads()).await;
        let writer = spawn_acquire(&manager, writes()).await;
        drop(first);
        let reader = acquired_by(reader).await.0;
        sleep(SHORT).await;
        assert!(!waits.is_finished() && !behind.is_finished(), "{own:?}");
        drop(reader);
        drop((acquired_by(waits).await, acquired_by(behind).await));
        assert!(store.calls().acquires > 1, "{own:?}");
        drop(acquired_by(writer).await);
        sleep(SECOND).await;
        assert_eq!(manager.holder("a").await.unwrap(), None);
    }
}

/// More readers and writers than a lease has numbers for.
#[tokio::test(start_paused = true)]
async fn thousands_of_readers_and_writers_and_the_tokens_still_grow() {
    let store = Scripted::new();
    let manager = store.manager();
    let order = Order::default();
    let held = manager.acquire("a", writes()).await.unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..3_000 {
        let (manager, order) = (manager.clone(), order.clone());
        tasks.spawn(async move {
            let options = if n % 4 == 0 { writes() } else { reads() };
            let guard = manager.acquire("a", options).await.unwrap();
            order.0.lock().unwrap().push(format!("{:020} ", guard.fencing_token()));
            settle().await;
            guard.release().await.unwrap();
        });
    }
    settle().await;
    drop(held);
    tasks.join_all().await;
    let seen = order.names();
    let tokens: Vec<_> = seen.split_whitespace().collect();
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), 3_000, "one for two holds");
    assert!(tokens.is_sorted(), "not in the order of the holds");
    assert!(store.calls().acquires < 100, "{}", store.calls().acquires);
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

#[tokio::test]
async fn over_redis_readers_cost_few_commands_and_another_process_gets_its_turn() {
    let server = RedisServer::start().await;
    // Another process gets its turn after a number of hand-offs, however long they take.
    let url = server.url_with("max_handoff_time=1h");
    let connect = async || LockManager::connect(&url).await.unwrap();
    let (here, there) = (connect().await, connect().await);
    let cli = server.cli().await;
    let commands = async || cli.info("total_commands_processed").await.parse::<u64>().unwrap();
    let before = commands().await;
    let (mut tasks, done) = (JoinSet::new(), Arc::<AtomicU64>::default());
    for n in 0..12_u32 {
        let (here, done) = (here.clone(), done.clone());
        tasks.spawn(async move {
            let mode = if n % 4 == 0 { Mode::Exclusive } else { Mode::Shared };
            for _ in 0..300 {
                let guard = here.acquire("a", LockOptions::new().mode(mode)).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                guard.release().await.unwrap();
            }
        });
    }
    eventually("they take turns", async || done.load(Ordering::Relaxed) > 0).await;
    let turn = in_time(there.acquire("a", LockOptions::new().mode(Mode::Shared)));
    turn.await.unwrap().release().await.unwrap();
    tasks.join_all().await;
    let (commands, done) = (commands().await - before, done.load(Ordering::Relaxed));
    // If the store were asked, each acquisition would cost ten commands or more, with those inside
    // scripts.
    assert!(commands < done, "{commands} commands, {done} acquisitions");
    drop((here, there));
    assert_nothing_left(&server).await;
}
