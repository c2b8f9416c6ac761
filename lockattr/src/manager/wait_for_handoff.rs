//! Waiting for a hand-off in the queue of this process, while watching the waiters ahead.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::LockGuard;
use crate::hold::last_known::{LastKnown, WaitQueues};
use crate::lock::options::ResolvedOptions;
use crate::queue::{PICK_UP_TIMEOUT, Received, Unclaimed, Waiter};

const MAX_CHECK_PAUSE: Duration = Duration::from_millis(500);

/// After this long without a sign of life, the head is replaced: its task may never be polled
/// again. Longer than twice the time between two signs, and than most stores take to answer.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// Waits for the hand-off. Replaces a waiter ahead that its runtime no longer polls, and a head
/// that lost its lock and does not release it.
pub(super) async fn wait_for_handoff(
    queues: &Arc<WaitQueues>,
    name: &str,
    waiter: &mut Waiter<ResolvedOptions, LockGuard, LastKnown>,
    lost: impl Fn(&LastKnown) -> bool,
) -> Received<ResolvedOptions, LockGuard, LastKnown> {
    let mut pause = PICK_UP_TIMEOUT;
    let (mut signs, mut since) = (None, Instant::now());
    loop {
        if let Ok(received) = timeout(pause, waiter.received()).await {
            return received;
        }
        queues.skip_lost_head(name, &lost);
        match queues.signs(name) {
            seen if seen != signs => (signs, since) = (seen, Instant::now()),
            Some(seen) if since.elapsed() >= SILENT_AFTER => queues.skip_silent_head(name, seen),
            _ => {}
        }
        pause = match queues.check_unclaimed(name, Instant::now()) {
            Unclaimed::Nothing => (2 * pause).min(MAX_CHECK_PAUSE),
            Unclaimed::ForNow => PICK_UP_TIMEOUT,
            Unclaimed::TooLong(received) => {
                drop(received);
                PICK_UP_TIMEOUT
            }
        };
    }
}
