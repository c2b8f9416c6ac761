//! Waiting for what a store does by itself.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The shortest and the longest pause between two looks. It doubles each time, so short waits are
/// exact and long waits are cheap.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// What only a store that hangs takes, on a machine however busy. Leases that a check does not want to end are longer.
pub(crate) const HUNG: Duration = Duration::from_secs(120);

/// Repeats `check` until it returns `true`.
///
/// # Panics
///
/// After [`HUNG`], with `what`. A `check` that hangs counts as `false`.
pub(crate) async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let (end, mut pause) = (Instant::now() + HUNG, PAUSES.0);
    while !timeout_at(end, check()).await.unwrap_or(false) {
        assert!(Instant::now() < end, "not within {HUNG:?}: {what}");
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}
