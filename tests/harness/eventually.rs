//! The only way to wait in a test: repeats a check until it holds, up to a limit.

use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The shortest and the longest pause between two checks. The pause doubles each time, so short
/// waits are exact and long waits are cheap.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Repeats `check` until it returns `true`.
///
/// ```ignore
/// eventually(SOON, "the lock is free", async || cli.value("lock:a").await.is_none()).await;
/// ```
///
/// The limit uses the runtime's clock, so it also works if that is paused.
///
/// # Panics
///
/// After `limit`, with `what` and the line of the caller. A `check` that hangs counts as `false`.
#[track_caller]
pub fn eventually(
    limit: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let mut backoff = Backoff::new(limit);
        while !timeout_at(backoff.end, check()).await.unwrap_or(false) {
            assert!(backoff.pause().await, "{caller}: not within {limit:?}: {what}");
        }
    }
}

/// The pauses of one wait, which double, for loops inside the harness. Futures that hold an async closure cannot
/// be spawned yet ("implementation of `Send` is not general enough"), and the harness' futures must
/// be.
pub(crate) struct Backoff {
    end: Instant,
    pause: Duration,
}

impl Backoff {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { end: Instant::now() + limit, pause: PAUSES.0 }
    }

    /// Sleeps for the next pause. Returns `false` if the limit has passed.
    pub(crate) async fn pause(&mut self) -> bool {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        Instant::now() < self.end
    }
}
