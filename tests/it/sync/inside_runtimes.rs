//! Plain locked functions, called in otherwise async programs.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, distributed_lock};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, block_in_place, spawn_blocking};

use super::manager;
use lockattr_tests::in_time;

const LIMIT: Duration = Duration::from_secs(30);

#[distributed_lock(key = "stock")]
fn count() -> Result<u32, Error> {
    Ok(lockattr::current().expect("under a lock").depth())
}

fn runtimes() -> [Runtime; 2] {
    [
        Builder::new_current_thread().enable_all().build().unwrap(),
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap(),
    ]
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    match outcome {
        Err(Error::InvalidOptions(sentence)) => {
            assert!(sentence.contains("`stock`"), "{sentence}");
            assert!(sentence.contains("`async fn`"), "{sentence}");
            assert!(sentence.contains("spawn_blocking"), "{sentence}");
        }
        other => panic!("{other:?}"),
    }
}

/// On threads where blocking would stop tasks.
#[test]
fn on_a_thread_that_runs_tasks_a_plain_function_says_what_to_do_instead() {
    for runtime in runtimes() {
        let manager = LockManager::builder().url("memory://").build().unwrap();
        let call = || manager.scope_blocking(count);
        assert_refused(runtime.block_on(async { call() }));
        let spawned = manager.clone();
        let task = async move { spawned.scope_blocking(count) };
        assert_refused(runtime.block_on(runtime.spawn(task)).unwrap());
        assert_refused(runtime.block_on(LocalSet::new().run_until(async { call() })));
        // On a thread that may block, but runs a task right now.
        let (handle, blocked) = (runtime.handle().clone(), manager.clone());
        let nested = move || handle.block_on(async { blocked.scope_blocking(count) });
        assert_refused(runtime.block_on(runtime.spawn_blocking(nested)).unwrap());
        // All other blocking calls are refused as well.
        runtime.block_on(async {
            let options = LockOptions::new;
            assert_refused(manager.acquire_blocking("stock", options()));
            assert_refused(manager.try_acquire_blocking("stock", options()));
            assert_refused(manager.acquire_all_blocking(["stock"], options()));
            assert_refused(manager.holder_blocking("stock"));
            let guard = manager.acquire("stock", options()).await.unwrap();
            assert_refused(guard.extend_blocking(LIMIT));
            assert_refused(guard.release_blocking());
            assert!(matches!(manager.shutdown_blocking(), Err(Error::InvalidOptions(_))));
            let connected = LockManager::connect_blocking("memory://");
            assert!(matches!(connected, Err(Error::InvalidOptions(_))));
        });
    }
}

/// The refused call costs the task one turn, and nothing else.
#[test]
fn a_task_that_was_refused_continues() {
    for runtime in runtimes() {
        let manager = LockManager::builder().url("memory://").build().unwrap();
        runtime.block_on(async {
            assert_refused(manager.scope_blocking(count));
            let (send, receive) = oneshot::channel();
            tokio::spawn(async move { send.send(7) });
            assert_eq!(in_time(receive).await.unwrap(), 7);
            manager.acquire("stock", LockOptions::new()).await.unwrap().release().await.unwrap();
        });
    }
}

#[test]
fn where_blocking_is_allowed_a_plain_function_waits_for_its_lock() {
    for runtime in runtimes() {
        let manager = LockManager::builder().url("memory://").build().unwrap();
        let blocked = manager.clone();
        let call = move || blocked.scope_blocking(count);
        let depth = runtime.block_on(async { spawn_blocking(call).await.unwrap() });
        assert_eq!(depth.unwrap(), 1);
        // Inside the context of a runtime that is not driven right now.
        let entered = runtime.enter();
        assert_eq!(manager.scope_blocking(count).unwrap(), 1);
        drop(entered);
        assert_eq!(manager.scope_blocking(count).unwrap(), 1);
    }
    let [_, threads] = runtimes();
    let manager = LockManager::builder().url("memory://").build().unwrap();
    let depth = threads.block_on(async {
        tokio::spawn(async move { block_in_place(|| manager.scope_blocking(count)) }).await.unwrap()
    });
    assert_eq!(depth.unwrap(), 1);
}

#[distributed_lock(key = "stock")]
async fn calls_directly() -> Result<u32, Error> {
    count()
}

#[distributed_lock(keys = ["stock", "shelf"])]
async fn calls_directly_with_two_keys() -> Result<u32, Error> {
    count_both()
}

#[distributed_lock(keys = ["shelf", "stock"])]
fn count_both() -> Result<u32, Error> {
    count()
}

#[tokio::test]
async fn a_nested_plain_call_needs_no_waiting_and_is_allowed_everywhere() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(calls_directly()).await.unwrap(), 2);
    assert_eq!(manager.scope(calls_directly_with_two_keys()).await.unwrap(), 3);
    let outer = manager.acquire("stock", LockOptions::new()).await.unwrap();
    let again = outer.scope(async { manager.acquire_blocking("stock", LockOptions::new()) });
    again.await.unwrap().release().await.unwrap();
    outer.release().await.unwrap();
    assert!(manager.holder("stock").await.unwrap().is_none());
}

/// The other branch holds the turn and runs on this very thread, so waiting for it would never end.
#[tokio::test]
async fn a_nested_plain_call_that_would_wait_for_its_own_thread_is_refused() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let guard = manager.acquire("stock", LockOptions::new()).await.unwrap();
    let other = guard.scope(manager.acquire("stock", LockOptions::new())).await.unwrap();
    assert_refused(manager.scope(guard.scope(async { count() })).await);
    drop(other);
    assert_eq!(manager.scope(guard.scope(async { count() })).await.unwrap(), 2);
}

#[distributed_lock(key = "stock", wait = "0s")]
fn count_at_once() -> Result<u32, Error> {
    Ok(lockattr::current().expect("under a lock").depth())
}

#[tokio::test]
async fn inherit_blocking_carries_the_chain_into_a_blocking_thread() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let guard = manager.acquire("stock", LockOptions::new()).await.unwrap();
    let calls = guard.scope(async {
        let begins_anew = spawn_blocking(|| lockattr::current().is_none()).await.unwrap();
        let inherits = spawn_blocking(lockattr::inherit_blocking(count_at_once)).await.unwrap();
        (begins_anew, inherits)
    });
    let (begins_anew, inherits) = manager.scope(calls).await;
    assert!(begins_anew);
    assert_eq!(inherits.unwrap(), 2);
}

/// The call chain is stored on the thread while the body runs, so futures that the body blocks on
/// see it.
#[test]
fn what_a_plain_body_blocks_on_is_nested_in_it() {
    #[distributed_lock(key = "stock", lease = lease)]
    fn blocks(handle: &Handle) -> Result<(u32, u32), Error> {
        let nested = async { Ok::<_, Error>(lockattr::current().map_or(0, |lease| lease.depth())) };
        Ok((lease.depth(), handle.block_on(nested_async(nested))?))
    }

    #[distributed_lock(key = "stock", wait = "0s")]
    async fn nested_async(body: impl Future<Output = Result<u32, Error>>) -> Result<u32, Error> {
        body.await
    }

    for runtime in runtimes() {
        assert_eq!(manager().scope_blocking(|| blocks(runtime.handle())).unwrap(), (1, 2));
    }
}

/// A task holds the lock and a thread waits for it: the hand-off crosses runtimes.
#[test]
fn a_task_hands_its_lock_to_a_thread_that_waits() {
    let [runtime, _] = runtimes();
    let manager = LockManager::builder().url("memory://").build().unwrap();
    let long = || LockOptions::new().ttl(10 * LIMIT).wait(LIMIT);
    let guard = runtime.block_on(manager.acquire("stock", long())).unwrap();
    let first = guard.fencing_token();
    let (sender, receiver) = mpsc::channel();
    let waits = manager.clone();
    let thread = std::thread::spawn(move || {
        sender.send(()).unwrap();
        waits.with_lock_blocking("stock", long(), Lease::fencing_token)
    });
    receiver.recv().unwrap();
    runtime.block_on(guard.release()).unwrap();
    assert!(thread.join().unwrap().unwrap() > first);
}

/// A plain call does not need the surrounding runtime to be driven or to have timers.
#[test]
fn an_undriven_runtime_does_not_stop_a_plain_call() {
    let bare = Builder::new_current_thread().build().unwrap();
    let _entered = bare.enter();
    let manager = LockManager::connect_blocking("memory://").unwrap();
    assert_eq!(manager.scope_blocking(count).unwrap(), 1);
}
