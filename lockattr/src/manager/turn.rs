//! Waiting for the turn in the queue of this process, with an eye on who is before.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::LockGuard;
use crate::line::{Came, PICKED_UP_WITHIN, Place};
use crate::options::Terms;

/// However long it waits, it looks as often: many may wait.
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// Waits for the turn. One before that its runtime does not drive any more is passed over.
pub(super) async fn turn_of(place: &mut Place<Terms, LockGuard>) -> Came<Terms, LockGuard> {
    let mut pause = PICKED_UP_WITHIN;
    loop {
        if let Ok(came) = timeout(pause, place.turn()).await {
            return came;
        }
        pause = match place.look(Instant::now()) {
            true => PICKED_UP_WITHIN,
            false => (2 * pause).min(LOOKS_EVERY),
        };
    }
}
