//! The one way to wait in a test: ask again until it is so, with a limit.

use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The pause between two looks grows from the first of these to the second: quick where it can be,
/// cheap where not.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Asks `check` until it says `true`.
///
/// ```ignore
/// eventually(SOON, "the lock is free", async || cli.value("lock:a").await.is_none()).await;
/// ```
///
/// The limit counts on the runtime's clock, so it also works on a paused one.
///
/// # Panics
///
/// When `limit` has passed, naming `what` and the line that waited. A `check` that hangs counts as
/// one that says no.
#[track_caller]
pub fn eventually(
    limit: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    let waits_at = Location::caller();
    async move {
        let mut patience = Patience::new(limit);
        while !timeout_at(patience.end, check()).await.unwrap_or(false) {
            assert!(patience.pause().await, "{waits_at}: not within {limit:?}: {what}");
        }
    }
}

/// The waiting itself, for loops of the harness' own. Futures that hold an async closure cannot be
/// spawned as yet ("implementation of `Send` is not general enough"), and those of the harness must
/// be.
pub(crate) struct Patience {
    end: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { end: Instant::now() + limit, pause: PAUSES.0 }
    }

    /// Waits a little. `false` when there is no more time for another look.
    pub(crate) async fn pause(&mut self) -> bool {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        Instant::now() < self.end
    }
}
