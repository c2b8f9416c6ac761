//! Runtimes that end, have no timers, or do not exist: nothing panics, and nothing stays locked.

mod blocked;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lockattr::{Error, Lease, LockGuard, LockManager, LockOptions, Release};
use lockattr_tests::{HUNG, eventually, force_release, in_time, skip, with_query};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use crate::support::{Fate, Scripted};

const SECOND: Duration = Duration::from_secs(1);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// Longer than any test, so a free lock was released and did not expire.
fn long() -> LockOptions {
    LockOptions::new().ttl(600 * SECOND).retry(0)
}

/// Asserts that the lock is released: a runtime that ends waits a second for that, and a thread continues.
fn is_soon_free(manager: &LockManager, key: &str) {
    let free = async || manager.holder(key).await.unwrap().is_none();
    runtime().block_on(eventually("it is free", free));
}

/// The watchdog's task ends with its runtime before it could send anything.
#[test]
fn locks_left_behind_by_a_runtime_are_released_when_it_ends() {
    let manager = Scripted::new().manager();
    runtime().block_on(async { drop(manager.acquire("a", long()).await.unwrap()) });
    is_soon_free(&manager, "a");
}

/// A guard inside a task is dropped with the task, before or after the watchdog's task.
#[test]
fn tasks_that_end_with_their_runtime_release_their_locks() {
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
    runtime.block_on(eventually("all are held", async || store.calls().acquires == 200));
    drop(runtime);
    for n in 0..200 {
        is_soon_free(&manager, &format!("k{n}"));
    }
}

#[test]
fn a_guard_that_outlives_its_runtime_releases_when_it_is_dropped() {
    let manager = Scripted::new().manager();
    let guard = runtime().block_on(manager.acquire("a", long())).unwrap();
    drop(guard);
    is_soon_free(&manager, "a");
}

/// A release without a reply when its runtime ends is sent once more, whether awaited or in the
/// background.
#[test]
fn a_pending_release_is_sent_again_when_its_runtime_ends() {
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
            eventually("sent", sent).await;
        });
        is_soon_free(&manager, "a");
        assert_eq!(store.calls().releases, [1, 1]);
    }
}

#[test]
fn a_store_that_is_gone_does_not_delay_the_end_of_a_runtime_for_long() {
    let store = Scripted::new();
    let manager = store.manager();
    store.releases(&[Fate::Refused]);
    let first = runtime();
    let mut guards = Vec::new();
    for n in 0..200 {
        guards.push(first.block_on(manager.acquire(format!("k{n}"), long())).unwrap());
    }
    let started = Instant::now();
    drop(first);
    drop(guards);
    // One second for all of them; it would be two hundred if each were waited for.
    assert!(started.elapsed() < HUNG);
    assert!(runtime().block_on(manager.holder("k99")).unwrap().is_some());
    // The thread continues, and no caller waits for it.
    store.releases(&[Fate::Answered]);
    runtime().block_on(async {
        for n in 0..200 {
            let free = async || manager.holder(format!("k{n}")).await.unwrap().is_none();
            eventually("released", free).await;
        }
    });
}

/// A paused clock ends with its runtime, and delayed retries are due at once.
#[test]
fn retries_delayed_by_a_paused_clock_are_not_delayed_forever() {
    let store = Scripted::new();
    let manager = store.manager();
    store.releases(&[Fate::Refused, Fate::Answered]);
    let paused = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    paused.block_on(async {
        sleep(3600 * SECOND).await;
        drop(manager.acquire("a", long()).await.unwrap());
        let tried = async || store.calls().releases == [1];
        eventually("tried and refused", tried).await;
    });
    drop(paused);
    is_soon_free(&manager, "a");
}

/// Polls the tasks spawned on `runtime` until they make no progress.
fn drive(runtime: &Runtime) {
    runtime.block_on(async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    });
}

/// A waiter stays on a runtime that is not driven any more, and its turn comes: it is handed the
/// lock or, with a lease of another length, must ask for it.
#[test]
fn a_waiter_on_an_undriven_runtime_delays_no_other() {
    for ttl in [600, 300] {
        let manager = Scripted::new().manager();
        let (driven, undriven) = (runtime(), runtime());
        let long_wait = LockOptions::new().ttl(600 * SECOND).wait(600 * SECOND);
        let guard = driven.block_on(manager.acquire("a", long_wait.clone())).unwrap();
        let waits = undriven.spawn({
            let (manager, long_wait) = (manager.clone(), long_wait.clone().ttl(ttl * SECOND));
            async move { manager.acquire("a", long_wait.wait(600 * SECOND)).await }
        });
        drive(&undriven);
        driven.block_on(guard.release()).unwrap();
        let guard = driven.block_on(async { in_time(manager.acquire("a", long_wait)).await });
        let guard = guard.unwrap();
        // When driven again, it is queued as if nothing had happened.
        drive(&undriven);
        assert!(!waits.is_finished(), "two hold it");
        let first = guard.fencing_token();
        driven.block_on(guard.release()).unwrap();
        let late = undriven.block_on(waits).unwrap().unwrap();
        assert!(late.fencing_token() > first);
        undriven.block_on(late.release()).unwrap();
        is_soon_free(&manager, "a");
    }
}

#[test]
fn a_lock_handed_to_a_waiter_on_an_undriven_runtime_is_released() {
    let store = Scripted::new();
    let (manager, other) = (store.manager(), store.manager());
    let (driven, undriven) = (runtime(), runtime());
    let guard = driven.block_on(manager.acquire("a", long())).unwrap();
    let waits = undriven.spawn({
        let manager = manager.clone();
        async move {
            manager.acquire("a", LockOptions::new().ttl(600 * SECOND).wait(600 * SECOND)).await
        }
    });
    drive(&undriven);
    driven.block_on(guard.release()).unwrap();
    assert_eq!(store.calls().releases.len(), 0, "handed to the waiter");
    // Another process, whose manager knows nothing of that waiter.
    let options = LockOptions::new().ttl(600 * SECOND).wait(36_000 * SECOND);
    let guard = driven.block_on(async {
        let waits = tokio::spawn(async move { other.acquire("a", options).await });
        eventually("it asks", async || store.calls().acquires > 1).await;
        // The first renewal notes that the lock is not picked up, and the second takes it back.
        for _ in 0..2 {
            let before = store.calls().renewals.len();
            skip(250 * SECOND);
            let goes_on = async || store.calls().renewals.len() > before || waits.is_finished();
            eventually("renewed or released", goes_on).await;
        }
        in_time(waits).await.unwrap()
    });
    driven.block_on(guard.unwrap().release()).unwrap();
    let late = undriven.block_on(waits).unwrap().unwrap();
    undriven.block_on(late.release()).unwrap();
    is_soon_free(&manager, "a");
}

#[test]
fn the_next_runtime_renews_what_an_ended_one_still_holds() {
    let store = Scripted::new();
    let manager = store.manager();
    let short = LockOptions::new().ttl(15 * SECOND);
    let first = runtime();
    let guard = first.block_on(manager.acquire("first", short.clone())).unwrap();
    let next = runtime();
    let other = next.block_on(manager.acquire("next", short)).unwrap();
    drop(first);
    next.block_on(async {
        let ends = || [&guard, &other].map(|guard| Instant::now() + guard.remaining());
        let before = ends();
        let renewed = async || (0..2).all(|nth| ends()[nth] > before[nth] + SECOND);
        eventually("both are renewed", renewed).await;
        guard.ensure_held().unwrap();
        other.ensure_held().unwrap();
    });
}

/// Without timers, no lease could be renewed and no loss reported.
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
    is_soon_free(&manager, "a");
    bare.block_on(manager.shutdown());
}

/// Polls a future once, outside of any runtime.
fn poll_outside<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Red without: `start` in `LeaderWatch::changed`, or the question for timers in `LeaseState::ended_alone`.
#[test]
fn whatever_waits_for_a_leader_is_refused_where_there_are_no_timers() {
    let manager = Scripted::new().manager();
    let leads = || manager.lead("a", LockOptions::new(), async |_term| ());
    let mut watch = manager.watch_leader("a").unwrap();
    let bare = Builder::new_current_thread().build().unwrap();
    let without_timers = [
        bare.block_on(watch.changed()).map(drop),
        bare.block_on(manager.leader("a")).map(drop),
        bare.block_on(leads()),
    ];
    for refusal in without_timers {
        let error = refusal.unwrap_err();
        assert!(
            matches!(&error, Error::InvalidOptions(why) if why.contains("enable_time")),
            "{error:?}"
        );
    }
    let changed = poll_outside(watch.changed()).map_ok(drop);
    for refusal in [changed, poll_outside(leads())] {
        let Poll::Ready(Err(error)) = refusal else { panic!("{refusal:?}") };
        assert!(
            matches!(&error, Error::InvalidOptions(why) if why.contains("tokio runtime")),
            "{error:?}"
        );
    }
    // A lease has no error to return: it tells of the end that others signal.
    let guard = runtime().block_on(manager.acquire("a", long())).unwrap();
    let lease = Lease::clone(&guard);
    assert!(poll_outside(lease.lost()).is_pending());
    let mut lost = pin!(lease.lost());
    bare.block_on(async { assert!(futures_util::poll!(lost.as_mut()).is_pending()) });
    drop(guard);
    bare.block_on(lost);
    is_soon_free(&manager, "a");
}

/// A runtime without I/O panics when a socket is opened. There is no server: the call is refused
/// before it looks for one.
#[test]
fn a_runtime_without_io_is_refused_by_stores_that_need_it() {
    let urls = [
        "redis://127.0.0.1:1/",
        "redis+cluster://127.0.0.1:1/",
        "redis+sentinel://127.0.0.1:1/main",
        "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/",
        "postgres://nobody@127.0.0.1:1/none",
        "postgres://nobody@127.0.0.1:1/none?lock=session",
        "mysql://nobody@127.0.0.1:1/none",
        "mysql://nobody@127.0.0.1:1/none?lock=session",
    ];
    for url in urls {
        let manager = LockManager::builder().url(url).build().unwrap();
        let refusals = [
            runtime().block_on(LockManager::connect(url)).map(drop),
            runtime().block_on(manager.acquire("a", LockOptions::new())).map(drop),
            runtime().block_on(manager.holder("a")).map(drop),
            runtime().block_on(manager.held_locks()).map(drop),
            runtime().block_on(force_release(&manager, "a")).map(drop),
        ];
        for refusal in refusals {
            let error = refusal.unwrap_err();
            let Error::InvalidOptions(message) = &error else { panic!("{url}: {error:?}") };
            assert!(message.contains("enable_io"), "{url}: {message}");
        }
        runtime().block_on(manager.shutdown());
    }
    // These have a thread of their own.
    for url in ["zookeeper://127.0.0.1:1/", "etcd://127.0.0.1:1"] {
        let url = with_query(url, "connect_timeout=200ms");
        let error = runtime().block_on(LockManager::connect(&url)).unwrap_err();
        assert!(matches!(error, Error::Store { .. }), "{url}: {error:?}");
    }
    assert!(runtime().block_on(LockManager::connect("memory://")).is_ok());
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
    is_soon_free(&manager, "a");
}

/// As in a `#[tokio::test]` whose assertion fails: the panic drops the runtime.
#[test]
fn a_main_that_panics_releases_its_locks() {
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
    is_soon_free(&manager, "a");
}

/// Each runtime's end waits, however long the thread has lived for the others.
#[test]
fn runtimes_that_end_one_after_the_other_are_each_waited_for() {
    let store = Scripted::new();
    let manager = store.manager();
    let started = Instant::now();
    let mut ended = 0;
    while started.elapsed() < SECOND + SECOND / 2 {
        // The delay of a store across the network.
        store.releases(&[Fate::Late(Duration::from_millis(20))]);
        let runtime = runtime();
        runtime.block_on(async { drop(manager.acquire("a", long()).await.unwrap()) });
        let dropped = Instant::now();
        drop(runtime);
        ended += 1;
        if store.calls().releases.iter().sum::<usize>() < ended {
            // The machine is so slow that the wait timed out. The next runtime would not wait.
            assert!(dropped.elapsed() >= SECOND * 9 / 10, "it is not waited for");
            break;
        }
    }
    is_soon_free(&manager, "a");
}

/// A manager that is gone leaves nothing behind once the last of its locks is released.
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

/// A waker may do anything, such as drop a guard at once.
struct DropsWhenWoken(Mutex<Option<LockGuard>>);

impl Wake for DropsWhenWoken {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

#[test]
fn a_waker_that_is_notified_of_a_loss_may_drop_the_guard() {
    let (sender, receiver) = mpsc::channel();
    // Runs on a thread of its own, since it may deadlock.
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
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(HUNG).expect("it waits for itself");
}
