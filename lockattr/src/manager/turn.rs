//! Waiting for the turn in the queue of this process, with an eye on the waiters before.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::LockGuard;
use crate::hold::known::{Known, Lines};
use crate::lock::options::Terms;
use crate::queue::{Came, Lying, PICKED_UP_WITHIN, Place};

/// However long it waits, it looks as often: many may wait.
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// After so long without a sign of life, the head is passed over: its task may never be polled again.
/// Longer than twice the time between two signs, and than most stores take to answer.
const SILENT: Duration = Duration::from_secs(5);

/// Waits for the turn. One before that its runtime does not drive any more is passed over, and so is a
/// head that lost its lock and does not let go of it.
pub(super) async fn turn_of(
    lines: &Arc<Lines>,
    name: &str,
    place: &mut Place<Terms, LockGuard, Known>,
    lost: impl Fn(&Known) -> bool,
) -> Came<Terms, LockGuard, Known> {
    let mut pause = PICKED_UP_WITHIN;
    let (mut signs, mut since) = (None, Instant::now());
    loop {
        if let Ok(came) = timeout(pause, place.turn()).await {
            return came;
        }
        lines.pass_over(name, &lost);
        match lines.signs(name) {
            seen if seen != signs => (signs, since) = (seen, Instant::now()),
            Some(seen) if since.elapsed() >= SILENT => lines.pass_over_silent(name, seen),
            _ => {}
        }
        pause = match lines.look(name, Instant::now()) {
            Lying::Nothing => (2 * pause).min(LOOKS_EVERY),
            Lying::ForNow => PICKED_UP_WITHIN,
            Lying::TooLong(came) => {
                drop(came);
                PICKED_UP_WITHIN
            }
        };
    }
}
