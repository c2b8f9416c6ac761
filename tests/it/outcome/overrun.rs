//! Bodies that outlast their lease without a look at the clock: in a computation, or in a process
//! that was stopped. Runs on the real clock, because nothing else runs meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, LostReason, OnLost};
use tokio::sync::oneshot;
use tokio::time::Instant;

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

fn fixed(ttl: Duration) -> LockOptions {
    LockOptions::new().ttl(ttl).renew(false)
}

/// A body that never awaits cannot be dropped, but its result is still not a success.
#[tokio::test]
async fn a_body_that_overran_without_awaiting_is_lost_not_ok() {
    let manager = manager();
    let ttl = Duration::from_millis(20);
    let overrun = async |lease: &Lease| {
        spin(2 * ttl);
        assert!(matches!(lease.ensure_held(), Err(Error::Lost { .. })), "the clock knows");
        17
    };
    for options in [fixed(ttl), LockOptions::new().ttl(ttl)] {
        for on_lost in [OnLost::Cancel, OnLost::Error] {
            let options = options.clone().on_lost(on_lost);
            let outcome = manager.with_lock("job", options, overrun).await;
            let Err(Error::Lost { reason, .. }) = outcome else { panic!("{outcome:?}") };
            assert_eq!(reason, LostReason::Expired, "the watchdog had no thread to renew on");
        }
        let options = options.clone().on_lost(OnLost::Ignore);
        assert_eq!(manager.with_lock("job", options, overrun).await.unwrap(), 17);
    }
}

/// A process that slept past its deadline wakes up with everything ready at once: its timers, and
/// the events that the body waited for. The body must not run first.
#[tokio::test]
async fn no_line_after_the_next_await_runs_as_holder_once_the_lease_has_lapsed() {
    let manager = manager();
    let ttl = Duration::from_millis(300);
    let (started, starts) = oneshot::channel();
    let (go, goes) = oneshot::channel::<()>();
    let ran = Arc::new(AtomicBool::new(false));
    let job = {
        let ran = ran.clone();
        let body = async move |_: &Lease| {
            started.send(()).unwrap();
            goes.await.unwrap();
            ran.store(true, Ordering::SeqCst);
        };
        tokio::spawn(
            async move { manager.with_lock("job", LockOptions::new().ttl(ttl), body).await },
        )
    };
    starts.await.unwrap();
    spin(2 * ttl);
    go.send(()).unwrap();
    assert!(matches!(job.await.unwrap(), Err(Error::Lost { .. })));
    assert!(!ran.load(Ordering::SeqCst), "the body continued");
}

/// Keeps the thread busy, as a computation does.
fn spin(time: Duration) {
    let started = Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
}
