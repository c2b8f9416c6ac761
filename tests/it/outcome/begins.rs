//! No body begins on an expired lease, whatever `on_lost` is. A slow tracing subscriber blocks the task
//! that has just been granted the lock.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{self, Stream, StreamExt};
use lockattr::{Error, Lease, LockManager, LockOptions, LostReason, OnLost, distributed_lock};
use lockattr_tests::capture_events;
use tokio::time::advance;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// No thread gets no core for so long.
const TTL: Duration = Duration::from_secs(10);
const NO_TIME: Duration = Duration::ZERO;
const TIME: Duration = Duration::from_secs(60);

/// Where the task blocks once after its lock was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// In the event that reports the grant.
    InEvent,
    /// When the span of the lock is next entered: right before the body.
    InSpan,
}

/// A subscriber that takes longer than the lease.
struct Slow {
    late: Late,
    block: fn(),
    granted: AtomicBool,
    has_blocked: Arc<AtomicBool>,
}

impl Slow {
    fn on_this_thread(late: Late, block: fn()) -> (DefaultGuard, Arc<AtomicBool>) {
        let has_blocked = Arc::<AtomicBool>::default();
        let granted = AtomicBool::default();
        let slow = Self { late, block, granted, has_blocked: has_blocked.clone() };
        (tracing::subscriber::set_default(slow), has_blocked)
    }

    fn block_at(&self, late: Late) {
        let granted = self.granted.load(Ordering::SeqCst);
        if granted && late == self.late && !self.has_blocked.swap(true, Ordering::SeqCst) {
            (self.block)();
        }
    }
}

impl Subscriber for Slow {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("lockattr")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut granted = GrantVisitor(false);
        event.record(&mut granted);
        if granted.0 {
            self.granted.store(true, Ordering::SeqCst);
            self.block_at(Late::InEvent);
        }
    }

    fn enter(&self, _: &Id) {
        self.block_at(Late::InSpan);
    }

    fn exit(&self, _: &Id) {}
}

struct GrantVisitor(bool);

impl Visit for GrantVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 |= field.name() == "message" && format!("{value:?}") == "lock acquired";
    }
}

/// Whether the lease was valid, each time a body began.
#[derive(Clone, Debug, Default)]
struct Begun(Arc<Mutex<Vec<bool>>>);

impl Begun {
    /// Records the lease. The first line of a body.
    fn here(&self) -> Result<(), Error> {
        let lease = lockattr::current().expect("a body");
        self.0.lock().unwrap().push(lease.ensure_held().is_ok());
        Ok(())
    }

    fn seen(&self) -> Vec<bool> {
        self.0.lock().unwrap().clone()
    }
}

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

/// Without wait budget the call is lost and its body does not begin. With one, the lock is acquired
/// again.
#[track_caller]
fn begins_only_when_held(late: Late, wait: Duration, begun: &Begun, outcome: Result<(), Error>) {
    if wait.is_zero() {
        let lost = matches!(outcome, Err(Error::Lost { reason: LostReason::Expired, .. }));
        assert!(lost, "{late:?}: {outcome:?}");
        assert_eq!(begun.seen(), [false; 0], "{late:?}: the body began without the lock");
    } else {
        outcome.unwrap();
        assert_eq!(begun.seen(), [true], "{late:?}");
    }
}

/// While another test meets an event for the first time, `tracing` may not ask a new subscriber about it. Then nothing
/// blocks, and the call proves nothing.
fn attempts() -> impl Iterator<Item = usize> {
    (0..).inspect(|attempt| assert!(*attempt < 100, "the test does nothing"))
}

/// Runs `call` with and without wait budget, and blocked in each place.
async fn each(call: impl AsyncFn(LockManager, Duration, Begun) -> Result<(), Error>) {
    for late in [Late::InEvent, Late::InSpan] {
        for wait in [NO_TIME, TIME] {
            for _ in attempts() {
                let (manager, begun) = (manager(), Begun::default());
                let (subscribed, has_blocked) = Slow::on_this_thread(late, block);
                let outcome = call(manager.clone(), wait, begun.clone()).await;
                drop(subscribed);
                if has_blocked.load(Ordering::SeqCst) {
                    begins_only_when_held(late, wait, &begun, outcome);
                    assert_eq!(manager.holder("job").await.unwrap(), None, "{late:?}");
                    break;
                }
            }
        }
    }
}

/// The same on threads without a runtime, on the real clock. All at once, because each blocks for longer than `TTL`.
fn each_blocking(call: impl Fn(LockManager, Duration, Begun) -> Result<(), Error> + Sync) {
    let blocked = |late, wait| {
        for _ in attempts() {
            let (manager, begun) = (manager(), Begun::default());
            let (subscribed, has_blocked) = Slow::on_this_thread(late, block_for_real);
            let outcome = call(manager.clone(), wait, begun.clone());
            drop(subscribed);
            if has_blocked.load(Ordering::SeqCst) {
                begins_only_when_held(late, wait, &begun, outcome);
                assert_eq!(manager.holder_blocking("job").unwrap(), None, "{late:?}");
                break;
            }
        }
    };
    thread::scope(|scope| {
        for late in [Late::InEvent, Late::InSpan] {
            for wait in [NO_TIME, TIME] {
                let blocked = &blocked;
                scope.spawn(move || blocked(late, wait));
            }
        }
    });
}

async fn by_hand(manager: LockManager, wait: Duration, begun: Begun) -> Result<(), Error> {
    let guard = manager.acquire("job", options(wait, OnLost::Cancel)).await?;
    begun.0.lock().unwrap().push(guard.ensure_held().is_ok());
    guard.release().await
}

/// The caller's code is the body here. Nothing enters the span.
#[tokio::test(start_paused = true)]
async fn no_guard_is_returned_on_a_lease_that_has_ended() {
    for wait in [NO_TIME, TIME] {
        for _ in attempts() {
            let (manager, begun) = (manager(), Begun::default());
            let (subscribed, has_blocked) = Slow::on_this_thread(Late::InEvent, block);
            let outcome = by_hand(manager.clone(), wait, begun.clone()).await;
            drop(subscribed);
            if has_blocked.load(Ordering::SeqCst) {
                begins_only_when_held(Late::InEvent, wait, &begun, outcome);
                assert_eq!(manager.holder("job").await.unwrap(), None);
                break;
            }
        }
    }
}

fn options(wait: Duration, on_lost: OnLost) -> LockOptions {
    LockOptions::new().ttl(TTL).wait(wait).on_lost(on_lost)
}

#[tokio::test(start_paused = true)]
async fn no_body_of_with_lock_begins_on_a_lease_that_has_ended() {
    for on_lost in [OnLost::Cancel, OnLost::Error, OnLost::Ignore] {
        each(async |manager: LockManager, wait, begun: Begun| {
            let body = async |lease: &Lease| {
                assert_eq!(lease.key(), "job");
                begun.here()
            };
            manager.with_lock("job", options(wait, on_lost), body).await?
        })
        .await;
    }
}

#[test]
fn no_body_of_with_lock_blocking_begins_on_a_lease_that_has_ended() {
    let each_ending = |on_lost| {
        each_blocking(|manager, wait, begun| {
            // The manager's own thread would renew it while this thread is blocked.
            let options = options(wait, on_lost).renew(false);
            manager.with_lock_blocking("job", options, |_| begun.here())?
        });
    };
    thread::scope(|scope| {
        scope.spawn(|| each_ending(OnLost::Error));
        scope.spawn(|| each_ending(OnLost::Ignore));
    });
}

#[distributed_lock(key = "job", manager = &manager, ttl = TTL, wait = wait)]
async fn cancelled(manager: LockManager, wait: Duration, begun: Begun) -> Result<(), Error> {
    begun.here()
}

#[distributed_lock(key = "job", manager = &manager, ttl = TTL, wait = wait, on_lost = error)]
async fn told(manager: LockManager, wait: Duration, begun: Begun) -> Result<(), Error> {
    begun.here()
}

#[distributed_lock(
    key = "job", manager = &manager, ttl = TTL, wait = wait, on_lost = ignore, lease = lease
)]
async fn ignored(manager: LockManager, wait: Duration, begun: Begun) -> Result<(), Error> {
    lease.ensure_held()?;
    begun.here()
}

#[distributed_lock(keys = ["job", "other"], manager = &manager, ttl = TTL, wait = wait, on_lost = error)]
async fn of_two(manager: LockManager, wait: Duration, begun: Begun) -> Result<(), Error> {
    begun.here()
}

#[tokio::test(start_paused = true)]
async fn no_annotated_body_begins_on_a_lease_that_has_ended() {
    each(cancelled).await;
    each(told).await;
    each(ignored).await;
    each(of_two).await;
}

#[distributed_lock(key = "job", manager = &manager, ttl = TTL, wait = wait, renew = false)]
fn plain(manager: LockManager, wait: Duration, begun: Begun) -> Result<(), Error> {
    begun.here()
}

#[distributed_lock(
    key = "job", manager = &manager, ttl = TTL, wait = wait, renew = false, on_lost = ignore
)]
fn plain_ignored(manager: LockManager, wait: Duration, begun: Begun) -> Result<(), Error> {
    begun.here()
}

#[test]
fn no_plain_body_begins_on_a_lease_that_has_ended() {
    thread::scope(|scope| {
        scope.spawn(|| each_blocking(plain));
        scope.spawn(|| each_blocking(plain_ignored));
    });
}

#[distributed_lock(key = "job", manager = &manager, ttl = TTL, wait = wait, on_lost = error)]
fn streamed(
    manager: LockManager,
    wait: Duration,
    begun: Begun,
) -> impl Stream<Item = Result<(), Error>> {
    let made = begun.here();
    stream::iter([made])
}

#[distributed_lock(key = "job", manager = &manager, ttl = TTL, wait = wait, on_lost = ignore)]
fn streamed_ignored(
    manager: LockManager,
    wait: Duration,
    begun: Begun,
) -> impl Stream<Item = Result<(), Error>> {
    let made = begun.here();
    stream::iter([made])
}

async fn first(stream: impl Stream<Item = Result<(), Error>>) -> Result<(), Error> {
    let items: Vec<_> = stream.collect().await;
    items.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn no_stream_begins_on_a_lease_that_has_ended() {
    each(async |manager, wait, begun| first(streamed(manager, wait, begun)).await).await;
    each(async |manager, wait, begun| first(streamed_ignored(manager, wait, begun)).await).await;
}

/// The stream is created while the lock is held, and first polled after its lease has expired.
#[tokio::test(start_paused = true)]
async fn a_stream_that_was_made_in_time_and_is_polled_late_is_lost() {
    let polled = AtomicU32::new(0);
    let stream = late_stream(manager(), &polled);
    let outcome = first(stream).await;
    assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
    assert_eq!(polled.load(Ordering::SeqCst), 0);
}

/// Blocks the whole thread, and not only a timer, for longer than the lease: the paused clock goes on, and no task runs.
fn block() {
    let _yields = advance(TTL * 3 / 2).now_or_never();
}

/// The same on the real clock.
#[expect(clippy::disallowed_methods, reason = "the fault that is meant")]
fn block_for_real() {
    thread::sleep(TTL * 3 / 2);
}

#[distributed_lock(key = "job", manager = &manager, ttl = TTL, renew = false, on_lost = error)]
fn late_stream(manager: LockManager, polled: &AtomicU32) -> impl Stream<Item = Result<(), Error>> {
    block();
    stream::once(async {
        polled.fetch_add(1, Ordering::SeqCst);
        Ok(())
    })
}

#[distributed_lock(key = "job", manager = manager, ttl = "1s", on_lost = error)]
async fn nested(manager: &LockManager, begun: &Begun) -> Result<(), Error> {
    begun.here()
}

/// A scope cannot fail. Its code finds no lease, and locked calls in it are lost.
#[tokio::test(start_paused = true)]
async fn a_scope_on_a_lease_that_has_ended_runs_as_no_holder() {
    let (manager, events, begun) = (manager(), capture_events(), Begun::default());
    let guard = manager.acquire("job", LockOptions::new().ttl(TTL).renew(false)).await.unwrap();
    let seen =
        guard.scope(async { (lockattr::current().is_some(), lockattr::held("job").is_some()) });
    assert_eq!(seen.await, (true, true));
    let late = guard.scope(async {
        assert!(lockattr::current().is_none() && lockattr::held("job").is_none());
        nested(&manager, &begun).await
    });
    tokio::time::sleep(TTL * 3 / 2).await;
    let all = events.all();
    assert!(all.len() == 1 && events.contains("lock lost: its lease expired"), "{all:?}");
    let outcome = late.await;
    assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
    let blocking = guard.scope_blocking(lockattr::current);
    assert!(blocking.is_none());
    assert_eq!(events.count("a scope begins on a lease that has ended"), 2);
    assert_eq!(begun.seen(), [false; 0]);
    assert_eq!(manager.holder("job").await.unwrap(), None);
}
