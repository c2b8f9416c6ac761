//! A permit is handed off inside a process, past the caller that asks the store. The store is asked
//! only for a number, and not even for that while all permits are in this process.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::poll;
use lockattr::{Error, LockGuard, LockManager, LockManagerBuilder, LockOptions};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, in_time};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{MS, PendingAcquire, SECOND, acquired_by, long_wait, on, settle, spawn_acquire};
use crate::support::{Fate, Scripted};

const TTL: Duration = Duration::from_secs(10);

fn permits(count: u32) -> LockOptions {
    long_wait().ttl(TTL).permits(count)
}

/// A manager that limits the number of hand-offs.
fn hands(store: &Arc<Scripted>, count: u32) -> LockManagerBuilder {
    on(store).max_handoffs(count).max_handoff_time(3600 * SECOND)
}

/// One of two permits, while another process holds the other, and a caller that waits in the
/// store's queue for one.
async fn one_of_two(
    store: &Arc<Scripted>,
    here: &LockManager,
) -> (LockGuard, LockGuard, PendingAcquire) {
    let one = here.acquire("a", permits(2)).await.unwrap();
    let there = store.manager().acquire("a", permits(2)).await.unwrap();
    (one, there, spawn_acquire(here, permits(2)).await)
}

/// Both of two permits, and a caller that waits in the store's queue for one.
async fn both(manager: &LockManager) -> ([LockGuard; 2], PendingAcquire) {
    let one = manager.acquire("a", permits(2)).await.unwrap();
    let two = manager.acquire("a", permits(2)).await.unwrap();
    ([one, two], spawn_acquire(manager, permits(2)).await)
}

#[tokio::test(start_paused = true)]
async fn permits_are_handed_off_with_tokens_that_grow() {
    let store = Scripted::new();
    let manager = hands(&store, 10_000).build().unwrap();
    let (inside, head) = both(&manager).await;
    let mut inside = Vec::from(inside);
    // A number is asked for only beyond a block of numbers.
    store.numbers(&[Fate::Answered, Fate::Refused]);
    let before = store.calls();
    let mut tokens: Vec<_> = inside.iter().map(|guard| guard.fencing_token()).collect();
    for n in 0..1_500 {
        let next = spawn_acquire(&manager, permits(2)).await;
        assert!(!next.is_finished(), "one too many");
        let leaves = inside.swap_remove(n * 7 % 2);
        match n % 3 {
            // A dropped guard cannot ask for the number that follows the block.
            0 if n < 900 => drop(leaves),
            _ => leaves.release().await.unwrap(),
        }
        let next = acquired_by(next).await.0;
        tokens.push(next.fencing_token());
        inside.push(next);
    }
    assert!(tokens.is_sorted_by(|one, next| one < next));
    assert!(!head.is_finished());
    sleep(20 * SECOND).await;
    inside.iter().for_each(|guard| guard.ensure_held().unwrap());
    let calls = store.calls();
    assert_eq!(calls.releases, before.releases);
    drop(inside);
    let head = acquired_by(head).await.0;
    assert!(head.fencing_token() > tokens[tokens.len() - 1]);
    drop(head);
    settle().await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// Other processes may be granted a permit between two hand-offs, so each number is asked for.
#[tokio::test(start_paused = true)]
async fn with_a_permit_elsewhere_each_token_is_requested_from_the_store() {
    let store = Scripted::new();
    let (here, there) = (hands(&store, 1_000).build().unwrap(), store.manager());
    let (mut one, other, head) = one_of_two(&store, &here).await;
    let mut tokens = vec![one.fencing_token(), other.fencing_token()];
    for _ in 0..100 {
        let next = spawn_acquire(&here, permits(2)).await;
        one.release().await.unwrap();
        one = acquired_by(next).await.0;
        tokens.push(one.fencing_token());
    }
    // Between two numbers of this process, the other process is given one.
    other.release().await.unwrap();
    let head = acquired_by(head).await.0;
    tokens.push(head.fencing_token());
    let waits = spawn_acquire(&there, permits(2)).await;
    drop(one);
    let other = acquired_by(waits).await.0;
    tokens.push(other.fencing_token());
    let (behind, next) =
        (spawn_acquire(&here, permits(2)).await, spawn_acquire(&here, permits(2)).await);
    head.release().await.unwrap();
    let next = acquired_by(next).await.0;
    tokens.push(next.fencing_token());
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    drop((next, other));
    drop(acquired_by(behind).await);
    settle().await;
    assert_eq!(here.holder("a").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_limited_number_passes_the_head_and_then_one_lease_goes_to_the_store() {
    for limit in [0, 1, 3] {
        let store = Scripted::new();
        let (here, there) = (hands(&store, limit).build().unwrap(), store.manager());
        let held = here.acquire("a", permits(1)).await.unwrap();
        let mut waiters = vec![spawn_acquire(&here, permits(1)).await];
        let other = spawn_acquire(&there, permits(1)).await;
        for _ in 0..10 {
            waiters.push(spawn_acquire(&here, permits(1)).await);
        }
        held.release().await.unwrap();
        let mut past_the_head = Vec::new();
        settle().await;
        while !other.is_finished() {
            let at =
                waiters.iter().position(PendingAcquire::is_finished).expect("one of them is next");
            acquired_by(waiters.remove(at)).await.0.release().await.unwrap();
            past_the_head.push(at > 0);
            settle().await;
        }
        // `limit` callers pass the head, then comes the head; as many pass the next head, then
        // comes the other process.
        let past = vec![true; limit as usize];
        assert_eq!(past_the_head, [&past[..], &[false], &past].concat(), "of {limit}");
        acquired_by(other).await.0.release().await.unwrap();
        while !waiters.is_empty() {
            settle().await;
            let at =
                waiters.iter().position(PendingAcquire::is_finished).expect("one of them is next");
            drop(acquired_by(waiters.remove(at)).await);
        }
        settle().await;
        assert_eq!(here.holder("a").await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_permit_without_a_token_goes_back_to_the_store() {
    for fate in [Fate::Refused, Fate::ReplyLost, Fate::Hangs] {
        let store = Scripted::new();
        let manager = hands(&store, 1_000).build().unwrap();
        let (one, there, head) = one_of_two(&store, &manager).await;
        let next = spawn_acquire(&manager, permits(2)).await;
        store.numbers(&[fate]);
        match fate {
            // The caller that waits for the release gives up.
            Fate::Hangs => assert!(timeout(SECOND, one.release()).await.is_err()),
            _ => one.release().await.unwrap(),
        }
        let head = acquired_by(head).await.0;
        settle().await;
        assert!(!next.is_finished(), "{fate:?}");
        drop(there);
        drop((acquired_by(next).await, head));
        settle().await;
        assert_eq!(manager.holder("a").await.unwrap(), None, "{fate:?}");
    }
}

/// By the time that caller comes, another process may have a greater number.
#[tokio::test(start_paused = true)]
async fn a_caller_that_arrives_after_the_token_was_requested_does_not_get_it() {
    let store = Scripted::new();
    let manager = hands(&store, 1_000).build().unwrap();
    let (one, there, head) = one_of_two(&store, &manager).await;
    let gives_up = spawn_acquire(&manager, permits(2)).await;
    store.numbers(&[Fate::Late(SECOND), Fate::Answered]);
    let release = tokio::spawn(async move { one.release().await });
    settle().await;
    gives_up.abort();
    let late = spawn_acquire(&manager, permits(2)).await;
    release.await.unwrap().unwrap();
    let head = acquired_by(head).await.0;
    settle().await;
    assert!(!late.is_finished());
    drop((there, head));
    acquired_by(late).await.0.release().await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// Callers that give up one after the other while they ask the store do not change the limits.
#[tokio::test(start_paused = true)]
async fn callers_that_give_up_keep_no_other_process_out() {
    for (wait, every) in [(100, 4), (15, 4), (500, 3)] {
        let store = Scripted::new();
        let (here, there) = (store.manager(), on(&store).build().unwrap());
        // Twice the load that can be served.
        let load = tokio::spawn(async move {
            let mut tasks = JoinSet::new();
            loop {
                let here = here.clone();
                tasks.spawn(async move {
                    let options = LockOptions::new().permits(2).wait(wait * MS);
                    if let Ok(guard) = here.acquire("a", options).await {
                        sleep(10 * MS).await;
                        guard.release().await.unwrap();
                    }
                });
                sleep(every * MS).await;
            }
        });
        sleep(SECOND).await;
        let turn = timeout(2 * SECOND, there.acquire("a", permits(2))).await;
        drop(turn.expect("it is never granted").unwrap());
        load.abort();
        settle().await;
    }
}

/// A pair of keys has a queue of its own, even if a single key's name looks like the pair.
#[tokio::test(start_paused = true)]
async fn a_claim_for_two_keys_is_not_handed_a_permit_of_one_key_that_looks_like_both() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let other = there.acquire("b", permits(1)).await.unwrap();
    let odd = here.acquire("a\nlock:b", permits(1)).await.unwrap();
    let spawn = |keys: &'static [&'static str]| {
        let here = here.clone();
        tokio::spawn(async move { here.acquire_all(keys, permits(1)).await.unwrap() })
    };
    let (head, both) = (spawn(&["a\nlock:b"]), spawn(&["a", "b"]));
    settle().await;
    odd.release().await.unwrap();
    drop(head.await.unwrap());
    sleep(60 * SECOND).await;
    assert!(!both.is_finished());
    other.ensure_held().unwrap();
    drop(other);
    drop(timeout(SECOND, both).await.expect("it is never granted").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_other_options_for_a_permit_asks_the_store() {
    let others = [permits(3), permits(2).ttl(60 * SECOND), permits(2).renew(false)];
    for (nth, other) in others.into_iter().enumerate() {
        let store = Scripted::new();
        let manager = hands(&store, 1_000).build().unwrap();
        let ([one, two], head) = both(&manager).await;
        let waits = spawn_acquire(&manager, other.clone()).await;
        one.release().await.unwrap();
        let head = acquired_by(head).await.0;
        settle().await;
        // Of three permits, one is left for the other process.
        assert_eq!(waits.is_finished(), nth == 0, "{other:?}");
        drop(head);
        drop((acquired_by(waits).await, two));
        settle().await;
        assert_eq!(manager.holder("a").await.unwrap(), None);
    }
}

/// The waiters that are handed a permit are gone.
///
/// Red without: the next waiter that `pass_on` looks for.
#[tokio::test(start_paused = true)]
async fn waiters_that_are_gone_are_passed_over() {
    let store = Scripted::new();
    let manager = hands(&store, 1_000).build().unwrap();
    for gone in 0..8 {
        let ([one, two], head) = both(&manager).await;
        let mut waiters = Vec::new();
        for _ in 0..3 {
            waiters.push(spawn_acquire(&manager, permits(2)).await);
        }
        one.release().await.unwrap();
        two.release().await.unwrap();
        for (n, waiter) in waiters.iter().enumerate() {
            if gone & (1 << n) != 0 {
                waiter.abort();
            }
        }
        for (n, waiter) in waiters.into_iter().enumerate() {
            match gone & (1 << n) == 0 {
                true => drop(acquired_by(waiter).await),
                false => assert!(waiter.await.is_err()),
            }
        }
        drop(acquired_by(head).await);
        settle().await;
        assert_eq!(manager.holder("a").await.unwrap(), None, "{gone:b}");
    }
}

/// A permit that was handed to a waiter whose future is never polled goes on to the next waiter,
/// and is not renewed forever.
#[tokio::test(start_paused = true)]
async fn a_permit_that_is_not_picked_up_goes_to_the_next_waiter() {
    let store = Scripted::new();
    let manager = hands(&store, 1_000).build().unwrap();
    let ([one, two], head) = both(&manager).await;
    let mut frozen = pin!(manager.acquire("a", permits(2)));
    assert!(poll!(&mut frozen).is_pending());
    one.release().await.unwrap();
    assert!(!head.is_finished());
    let head = timeout(TTL, acquired_by(head))
        .await
        .expect("it is held for a future that is not polled")
        .0;
    drop((head, two));
    drop(frozen.await.unwrap());
    settle().await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// Red without: the checks of `stays` in `asks_for_number` and in `pass_on`.
#[tokio::test(start_paused = true)]
async fn a_permit_under_hold_at_least_is_not_handed_off() {
    let store = Scripted::new();
    let manager = hands(&store, 1_000).build().unwrap();
    let stays = permits(1).hold_at_least(5 * SECOND);
    let first = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.with_lock("a", stays, async |_| ()).await })
    };
    settle().await;
    first.await.unwrap().unwrap();
    let (head, next) =
        (spawn_acquire(&manager, permits(1)).await, spawn_acquire(&manager, permits(1)).await);
    sleep(4 * SECOND).await;
    assert!(!head.is_finished() && !next.is_finished());
    drop(acquired_by(head).await);
    drop(acquired_by(next).await);
    settle().await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// Red without: the check of the lease in `asks_for_number`; the shutdown of a permit that is being
/// handed off.
#[tokio::test(start_paused = true)]
async fn a_permit_that_is_lost_or_shut_down_is_not_handed_off() {
    let store = Scripted::new();
    let manager = hands(&store, 1_000).build().unwrap();
    let ([one, two], head) = both(&manager).await;
    let next = spawn_acquire(&manager, permits(2)).await;
    store.restart();
    timeout(TTL, two.lost()).await.expect("notified by the next renewal");
    timeout(TTL, one.lost()).await.expect("notified by the next renewal");
    assert!(matches!(two.release().await, Err(Error::Lost { .. })));
    let head = acquired_by(head).await.0;
    let next = acquired_by(next).await.0;
    assert!(next.fencing_token() > one.fencing_token());
    let waits =
        [spawn_acquire(&manager, permits(2)).await, spawn_acquire(&manager, permits(2)).await];
    let down = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.shutdown().await })
    };
    timeout(SECOND, head.lost()).await.unwrap();
    head.release().await.ok();
    drop((next, one));
    for waits in waits {
        assert!(matches!(waits.await.unwrap().0, Err(Error::ShutDown { .. })));
    }
    timeout(SECOND, down).await.unwrap().unwrap();
    assert_eq!(store.manager().holder("a").await.unwrap(), None);
}

/// Red without: the hand-off (each acquisition then costs two scripts); `is_raised` in
/// `Node::increment`.
#[tokio::test]
async fn over_redis_most_permits_cost_one_plain_command() {
    let server = RedisServer::start().await;
    // Another process gets its turn after a number of hand-offs, however long they take.
    let url = server.url_with("max_handoff_time=1h");
    let connect = async || LockManager::connect(&url).await.unwrap();
    let (here, there) = (connect().await, connect().await);
    let mut tasks = JoinSet::new();
    let each = 300_u64;
    let cli = server.cli().await;
    for _ in 0..16 {
        let here = here.clone();
        tasks.spawn(async move {
            for _ in 0..each {
                let guard = here.acquire("a", LockOptions::new().permits(4)).await.unwrap();
                tokio::task::yield_now().await;
                guard.release().await.unwrap();
            }
        });
    }
    eventually("they are under way", async || !cli.keys("lock:*").await.is_empty()).await;
    let turn = in_time(there.acquire("a", LockOptions::new().permits(4)));
    turn.await.unwrap().release().await.unwrap();
    tasks.join_all().await;
    let scripts = cli.commandstats().await["evalsha"];
    // Without the hand-off, each permit costs two scripts.
    assert!(scripts < 16 * each / 4, "{scripts} scripts for {} permits", 16 * each);
    drop((here, there));
    assert_nothing_left(&server).await;
}
