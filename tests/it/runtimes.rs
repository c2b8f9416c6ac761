//! Runtimes that end, have no timers, or are not there: nothing panics, and nothing stays locked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lockattr::{Error, Lease, LockGuard, LockManager, LockOptions, Release};
use lockattr_tests::eventually;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use crate::support::{Fate, Scripted};

const SECOND: Duration = Duration::from_secs(1);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// Longer than any test: what is free was given back, and did not end by itself.
fn long() -> LockOptions {
    LockOptions::new().ttl(600 * SECOND).retry(0)
}

fn is_free(manager: &LockManager, key: &str) -> bool {
    runtime().block_on(manager.holder(key)).unwrap().is_none()
}

/// The watchdog's task goes down with its runtime before it could send anything.
///
/// Red without: the thread of the last resort.
#[test]
fn what_a_runtime_leaves_behind_is_given_back_when_it_ends() {
    let manager = Scripted::new().manager();
    runtime().block_on(async { drop(manager.acquire("a", long()).await.unwrap()) });
    assert!(is_free(&manager, "a"));
}

/// A guard inside a task is dropped with it, after the watchdog's task or before.
///
/// Red without: the thread of the last resort.
#[test]
fn tasks_that_end_with_their_runtime_give_back_what_they_hold() {
    let store = Scripted::new();
    let manager = store.manager();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    for n in 0..200 {
        let manager = manager.clone();
        runtime.spawn(async move {
            let body = async |_: &_| std::future::pending::<()>().await;
            manager.with_lock(format!("k{n}"), long(), body).await
        });
    }
    runtime
        .block_on(eventually(10 * SECOND, "all are held", async || store.calls().acquires == 200));
    drop(runtime);
    for n in 0..200 {
        assert!(is_free(&manager, &format!("k{n}")), "k{n}");
    }
}

/// Red without: the thread of the last resort, where there is no runtime to start a task on.
#[test]
fn a_guard_that_outlives_its_runtime_gives_back_when_it_is_dropped() {
    let manager = Scripted::new().manager();
    let guard = runtime().block_on(manager.acquire("a", long())).unwrap();
    drop(guard);
    assert!(is_free(&manager, "a"));
}

/// What was sent and not answered when the runtime ended is sent once more, whoever sent it.
///
/// Red without: `Unanswered`, which puts a batch back that is dropped on its way.
#[test]
fn a_release_under_way_when_its_runtime_ends_is_sent_again() {
    for background in [false, true] {
        let store = Scripted::new();
        let manager = store.manager();
        store.releases(&[Fate::Hangs, Fate::Answered]);
        runtime().block_on(async {
            if background {
                let options = long().release(Release::Background);
                manager.with_lock("a", options, async |_| ()).await.unwrap();
            } else {
                drop(manager.acquire("a", long()).await.unwrap());
            }
            let sent = async || store.calls().releases == [1];
            eventually(10 * SECOND, "sent", sent).await;
        });
        assert!(is_free(&manager, "a"), "background: {background}");
        assert_eq!(store.calls().releases, [1, 1]);
    }
}

/// Red without: the limit on how long a runtime's end is held up.
#[test]
fn a_store_that_is_gone_does_not_hold_up_the_end_of_a_runtime_for_long() {
    let store = Scripted::new();
    let manager = store.manager();
    store.releases(&[Fate::Refused]);
    let first = runtime();
    let mut guards = Vec::new();
    for n in 0..100 {
        guards.push(first.block_on(manager.acquire(format!("k{n}"), long())).unwrap());
    }
    let started = Instant::now();
    drop(first);
    drop(guards);
    // A second for all of them; a hundred if it were for each.
    assert!(started.elapsed() < 30 * SECOND);
    assert!(!is_free(&manager, "k99"));
    // The thread goes on without being waited for.
    store.releases(&[Fate::Answered]);
    runtime().block_on(async {
        for n in 0..100 {
            let free = async || manager.holder(format!("k{n}")).await.unwrap().is_none();
            eventually(20 * SECOND, "given back", free).await;
        }
    });
}

/// A paused clock ends with its runtime; what it had put off is due at once then.
///
/// Red without: `hurry` in the watchdog's queue.
#[test]
fn what_a_paused_clock_put_off_is_not_put_off_for_ever() {
    let store = Scripted::new();
    let manager = store.manager();
    store.releases(&[Fate::Refused, Fate::Answered]);
    let paused = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    paused.block_on(async {
        sleep(3600 * SECOND).await;
        drop(manager.acquire("a", long()).await.unwrap());
        let tried = async || store.calls().releases == [1];
        eventually(10 * SECOND, "tried in vain", tried).await;
    });
    drop(paused);
    assert!(is_free(&manager, "a"));
}

/// Red without: `Runner::start`, called by every acquire, looking at what lies in the queue.
#[test]
fn the_next_runtime_renews_what_an_ended_one_still_holds() {
    let store = Scripted::new();
    let manager = store.manager();
    let short = LockOptions::new().ttl(SECOND / 5);
    let first = runtime();
    let guard = first.block_on(manager.acquire("first", short.clone())).unwrap();
    let next = runtime();
    let other = next.block_on(manager.acquire("next", short)).unwrap();
    drop(first);
    let before = store.calls().renewals.len();
    next.block_on(async {
        let renewed = async || store.calls().renewals.len() > before + 6;
        eventually(10 * SECOND, "renewed", renewed).await;
        guard.ensure_held().unwrap();
        other.ensure_held().unwrap();
    });
}

/// Without timers no lease could be renewed, and no loss be told.
///
/// Red without: the question in `Runner::start`.
#[test]
fn a_runtime_without_timers_is_refused() {
    let bare = Builder::new_current_thread().build().unwrap();
    let manager = Scripted::new().manager();
    for _ in 0..2 {
        let error = bare.block_on(manager.acquire("a", long())).unwrap_err();
        let Error::InvalidOptions(message) = &error else { panic!("{error:?}") };
        assert!(message.contains("enable_time"), "{message}");
    }
    // A guard may still be dropped there.
    let guard = runtime().block_on(manager.acquire("a", long())).unwrap();
    bare.block_on(async { drop(guard) });
    assert!(is_free(&manager, "a"));
    bare.block_on(manager.shutdown());
}

#[test]
fn nothing_panics_outside_a_runtime() {
    let manager = Scripted::new().manager();
    let guard = runtime().block_on(manager.acquire("a", LockOptions::new())).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut acquire = pin!(manager.acquire("b", LockOptions::new()));
    let Poll::Ready(Err(error)) = acquire.as_mut().poll(&mut context) else {
        panic!("granted outside a runtime");
    };
    assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
    let mut shutdown = pin!(manager.shutdown());
    assert!(shutdown.as_mut().poll(&mut context).is_ready());
    assert!(guard.ensure_held().is_err());
    drop(guard);
    assert!(is_free(&manager, "a"));
}

/// As in a `#[tokio::test]` whose assertion fails: the runtime is dropped by the panic.
///
/// Red without: the thread of the last resort, also during a panic.
#[test]
fn a_main_that_panics_gives_back_what_it_holds() {
    let manager = Scripted::new().manager();
    let runtime = runtime();
    let main = AssertUnwindSafe(|| {
        let runtime = runtime;
        runtime.block_on(async {
            let _guard = manager.acquire("a", long()).await.unwrap();
            panic!("a bug");
        })
    });
    assert!(catch_unwind(main).is_err());
    assert!(is_free(&manager, "a"));
}

/// Each of them is waited for, however long the thread has lived for the others.
///
/// Red without: the thread's being given up only by whoever waited in vain.
#[test]
fn runtimes_that_end_one_after_the_other_are_each_waited_for() {
    let store = Scripted::new();
    let manager = store.manager();
    let started = Instant::now();
    let mut ended = 0;
    while started.elapsed() < SECOND + SECOND / 2 {
        // As a store across the network does.
        store.releases(&[Fate::Late(Duration::from_millis(20))]);
        let runtime = runtime();
        runtime.block_on(async { drop(manager.acquire("a", long()).await.unwrap()) });
        drop(runtime);
        ended += 1;
        assert_eq!(store.calls().releases.iter().sum::<usize>(), ended);
    }
    assert!(is_free(&manager, "a"));
}

/// A manager that is gone leaves nothing behind once the last of its locks is released.
///
/// Red without: a wake-up for the task when a hold is forgotten.
#[tokio::test(start_paused = true)]
async fn the_watchdog_ends_with_the_last_guard_of_a_manager_that_is_gone() {
    for by_hand in [true, false] {
        let store = Scripted::new();
        let guard = store.manager().acquire("a", long()).await.unwrap();
        sleep(SECOND).await;
        if by_hand {
            guard.release().await.unwrap();
        } else {
            drop(guard);
        }
        sleep(SECOND).await;
        assert_eq!(Arc::strong_count(&store), 1, "by hand: {by_hand}");
    }
}

/// Who is woken may do what it likes, such as to drop a guard at once.
struct DropsWhenWoken(Mutex<Option<LockGuard>>);

impl Wake for DropsWhenWoken {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

/// Red without: signalling holds only while the queue is not locked.
#[test]
fn whoever_is_told_of_a_loss_may_drop_its_guard_there_and_then() {
    let (tell, told) = mpsc::channel();
    // All of it on a thread of its own, which may wait for itself for ever.
    std::thread::spawn(move || {
        let manager = Scripted::new().manager();
        runtime().block_on(async {
            let guard = manager.acquire("a", long()).await.unwrap();
            let lease = Lease::clone(&guard);
            let waker = Arc::new(DropsWhenWoken(Mutex::new(Some(guard)))).into();
            let mut lost = Box::pin(async move { lease.lost().await });
            assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            manager.shutdown().await;
        });
        tell.send(()).unwrap();
    });
    told.recv_timeout(20 * SECOND).expect("it waits for itself");
}
