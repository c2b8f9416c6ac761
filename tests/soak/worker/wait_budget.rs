//! Checks that every waiting caller is answered in time.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::World;
use super::turn::Turn;
use crate::outcome::Complaint;

/// What an answer may take beyond the caller's wait budget: the store's own timeouts, and a busy
/// machine.
pub(super) const SLACK: Duration = Duration::from_secs(8);

/// Time for the pulse to notice that the process was stopped.
const MOMENT: Duration = Duration::from_millis(300);

/// The answer to a caller with this wait budget, or a complaint that there was none. Where
/// `has_begun` is true, there was one.
pub(super) async fn in_time<T>(
    world: &World,
    turn: &Turn,
    asked: impl Future<Output = T>,
    has_begun: impl Fn() -> bool,
) -> Option<T> {
    let (mut asked, since) = (pin!(asked), Instant::now());
    let stopped_before = world.pulse.stopped_for();
    let limit = || turn.max_wait + SLACK + (world.pulse.stopped_for() - stopped_before);
    loop {
        if let Ok(answer) = timeout(limit().saturating_sub(since.elapsed()), &mut asked).await {
            return Some(answer);
        }
        if let Ok(answer) = timeout(MOMENT, &mut asked).await {
            return Some(answer);
        }
        if has_begun() {
            return Some(asked.await);
        }
        if since.elapsed() > limit() {
            let text = format!("no answer for {:?} to {turn:?}", since.elapsed());
            world.complaints.say(Complaint::Hung(text));
            return None;
        }
    }
}
