//! Requests that wait in this process, and requests without an answer: what their callers learn, and what the store is
//! asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::poll_immediate;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, LockKey, MemoryStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError,
};
use lockattr::{Error, Holder, LockManager, LockOptions, Mode};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::support::{Fate, Scripted};

const SECOND: Duration = Duration::from_secs(1);

/// A store whose requests to acquire wait in this process until they may leave.
#[derive(Debug, Default)]
struct Batching {
    locks: MemoryStore,
    is_open: AtomicBool,
    opens: Notify,
    /// How many requests to acquire, and how many releases, have left.
    acquires: AtomicUsize,
    releases: AtomicUsize,
}

/// How long it takes to answer a request to acquire that has left.
const ANSWERS_AFTER: Duration = Duration::from_millis(200);

impl Batching {
    fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
        self.opens.notify_waiters();
    }

    fn sent(&self) -> [usize; 2] {
        [&self.acquires, &self.releases].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Store for Batching {
    fn notes_departures(&self) -> bool {
        true
    }

    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        if !self.is_open.load(Ordering::Relaxed) {
            self.opens.notified().await;
        }
        request.claim.departs();
        self.acquires.fetch_add(1, Ordering::Relaxed);
        let outcome = self.locks.acquire(request).await;
        sleep(ANSWERS_AFTER).await;
        outcome
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.locks.renew(renewals).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        self.releases.fetch_add(releases.len(), Ordering::Relaxed);
        self.locks.release(releases).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.locks.holder(key).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn over(store: &Arc<Batching>) -> LockManager {
    LockManager::builder().store(store.clone()).build().unwrap()
}

/// 250 ms after the wait, the call ends as `Store`; without a wait, when its request could have been sent and answered.
/// The request never leaves after that.
///
/// Red without: `departed_at` in `no_response`, or either end in `response_deadline`.
#[tokio::test(start_paused = true)]
async fn a_request_that_did_not_leave_before_its_call_ended_is_neither_sent_nor_undone() {
    let store = Arc::new(Batching::default());
    let manager = over(&store);
    for (wait, ends) in [(SECOND, 1250), (Duration::ZERO, 10_000)] {
        let began = Instant::now();
        let refused = manager.acquire("a", LockOptions::new().wait(wait)).await.map(drop);
        let Err(error @ Error::Store { .. }) = refused else { panic!("{refused:?}") };
        let says = format!("{error:?}");
        assert!(says.contains("was not sent to the store before `wait` ended"), "{says}");
        assert_eq!(began.elapsed().as_millis(), ends);
    }
    store.open();
    manager.shutdown().await;
    assert_eq!(store.sent(), [0, 0]);
}

/// Red without: `departed_at` in the drop of `PendingAcquire`.
#[tokio::test(start_paused = true)]
async fn a_request_whose_caller_is_dropped_before_it_leaves_is_neither_sent_nor_undone() {
    let store = Arc::new(Batching::default());
    let manager = over(&store);
    let mut dropped = Box::pin(manager.acquire("a", LockOptions::new()));
    assert!(poll_immediate(dropped.as_mut()).await.is_none());
    drop(dropped);
    let mut left = Box::pin(manager.acquire("b", LockOptions::new()));
    assert!(poll_immediate(left.as_mut()).await.is_none());
    store.open();
    assert!(poll_immediate(left.as_mut()).await.is_none());
    drop(left);
    manager.shutdown().await;
    assert_eq!(store.sent(), [1, 1], "only that which has left is undone");
}

/// Red without: `left` in `response_deadline`, or `departed_at` in `send`.
#[tokio::test(start_paused = true)]
async fn the_time_to_answer_and_the_lease_begin_when_the_request_leaves() {
    let store = Arc::new(Batching::default());
    let manager = over(&store);
    let opens_after = async |delay, options: LockOptions| {
        store.is_open.store(false, Ordering::Relaxed);
        let opens = async {
            sleep(delay).await;
            store.open();
        };
        let acquired = manager.acquire("a", options.ttl(10 * SECOND));
        let (guard, ()) = tokio::join!(acquired, opens);
        let guard = guard.unwrap();
        assert!(guard.remaining() > 9 * SECOND, "{:?}", guard.remaining());
        guard.release().await.unwrap();
    };
    opens_after(4 * SECOND, LockOptions::new().wait(Duration::ZERO)).await;
    opens_after(60 * SECOND, LockOptions::new().retry(0)).await;
    // Its answer comes after the wait, within 250 ms.
    opens_after(SECOND * 95 / 100, LockOptions::new().wait(SECOND)).await;
}

/// Another caller of the process learns meanwhile that the lock is held.
///
/// Red without: the refusal in `send`, the keys or the mode in `Refusals`, or what `no_response` says without a refusal.
#[tokio::test(start_paused = true)]
async fn a_missing_answer_is_contended_only_about_a_lock_that_was_refused() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), store.manager());
    let _held = there.acquire("a", LockOptions::new()).await.unwrap();
    let once = || LockOptions::new().wait(Duration::ZERO);
    store.acquires(&[Fate::Hangs, Fate::Hangs, Fate::Hangs, Fate::Answered]);
    let unanswered = async {
        tokio::join!(
            here.acquire("a", once()),
            here.acquire("a", once().mode(Mode::Shared)),
            here.acquire("b", once()),
        )
    };
    let refused = async {
        sleep(SECOND).await;
        here.acquire("a", once()).await
    };
    let ((same, shared, other), refused) = tokio::join!(unanswered, refused);
    for contended in [refused, same] {
        let error = contended.map(drop).unwrap_err();
        assert!(matches!(error, Error::Contended { holder: Some(_), .. }), "{error:?}");
    }
    for unknown in [shared, other] {
        let error = unknown.map(drop).unwrap_err();
        assert!(matches!(error, Error::Store { .. }), "{error:?}");
    }
}
