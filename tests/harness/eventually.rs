//! The only ways to wait in a test. Both end when what they wait for happens; none says how long that may take.
//!
//! A bound on elapsed time measures the machine. What has to be sooner than something else is an order of events:
//! the test sets the other to an hour, and waits here.

use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use crate::clock;

/// What only a program that hangs takes. It is longer than the timeouts in a [`patient`](crate::patient) URL, so a
/// store that does not answer is reported by its own error.
pub const HUNG: Duration = Duration::from_secs(120);

/// The shortest and the longest pause between two checks. The pause doubles each time, so short
/// waits are exact and long waits are cheap.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Repeats `check` until it returns `true`.
///
/// ```ignore
/// eventually("the lock is free", async || cli.value("lock:a").await.is_none()).await;
/// ```
///
/// The limit uses the runtime's clock, so it also works if that is paused.
///
/// # Panics
///
/// After [`HUNG`], with `what` and the line of the caller. A `check` that hangs counts as `false`.
#[track_caller]
pub fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let mut backoff = Backoff::new();
        while !timeout_at(backoff.end, check()).await.unwrap_or(false) {
            assert!(backoff.pause().await, "{caller}: not within {HUNG:?}: {what}");
        }
    }
}

/// Waits for what `future` returns.
///
/// ```ignore
/// let guard = in_time(manager.acquire("a", LockOptions::new())).await.unwrap();
/// ```
///
/// # Panics
///
/// After [`HUNG`], with the line of the caller.
#[track_caller]
pub fn in_time<F: IntoFuture>(future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        let ended = timeout(HUNG, future.into_future()).await;
        ended.unwrap_or_else(|_| panic!("{caller}: not within {HUNG:?}"))
    }
}

/// The pauses of one wait, which double, for loops inside the harness. Futures that hold an async closure cannot
/// be spawned yet ("implementation of `Send` is not general enough"), and the harness' futures must
/// be.
pub(crate) struct Backoff {
    end: Instant,
    /// A test that moves the clock leaves time for what goes on meanwhile.
    waited: Duration,
    pause: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { end: Instant::now() + HUNG, waited: Duration::ZERO, pause: PAUSES.0 }
    }

    /// Sleeps for the next pause. Returns `false` if the limit has passed.
    pub(crate) async fn pause(&mut self) -> bool {
        clock::pause(self.pause).await;
        self.waited += self.pause;
        self.pause = (self.pause * 2).min(PAUSES.1);
        match clock::is_stopped() {
            // `end` never comes.
            true => self.waited < HUNG,
            false => Instant::now() < self.end || self.waited < HUNG / 4,
        }
    }
}
