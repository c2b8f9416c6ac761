//! One warning for each lost lease, and a bounded number of them.
//!
//! An outage of the store can end thousands of leases at once. The task that renews the others
//! emits these events, and a subscriber may write each to a file before the next renewal is sent.
//! So after [`MOST`] lines in [`WINDOW`], the rest is counted, and one line reports the count. No
//! loss is left out of the metrics, nor of the `DEBUG` event at the end of its hold.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::TARGET;
use super::outcome::{error_type, named};
use super::telemetry::Labels;
use crate::LostReason;
use crate::lease::LeaseState;

/// How many losses have a line of their own in each window: enough to see which templates are
/// concerned.
pub(super) const MOST: u64 = 100;

/// The length of a window: the default TTL, within which an outage ends all leases.
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// The losses of one manager in the current window.
#[derive(Debug, Default)]
pub(super) struct LossLog {
    window: Mutex<Option<Window>>,
}

#[derive(Debug)]
struct Window {
    ends: Instant,
    logged: u64,
    left_out: u64,
}

/// What to do with a loss.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Emit an event; before it, one about so many that were counted in the last window.
    Log { left_out: u64 },
    /// It is counted. `first`: no summary of this window is planned yet.
    Count { first: bool },
}

impl LossLog {
    pub(super) fn admit(&self, now: Instant) -> Admission {
        let mut window = self.window();
        let left_out = match &mut *window {
            Some(Window { ends, logged, .. }) if now < *ends && *logged < MOST => {
                *logged += 1;
                return Admission::Log { left_out: 0 };
            }
            Some(Window { ends, left_out, .. }) if now < *ends => {
                *left_out += 1;
                return Admission::Count { first: *left_out == 1 };
            }
            over => over.as_ref().map_or(0, |window| window.left_out),
        };
        *window = Some(Window { ends: now + WINDOW, logged: 1, left_out: 0 });
        Admission::Log { left_out }
    }

    /// Takes out the number of losses that were counted in a window that is over.
    pub(super) fn take(&self, now: Instant) -> u64 {
        let over = self.window().take_if(|window| window.ends <= now);
        over.map_or(0, |window| window.left_out)
    }

    pub(super) fn next_summary(&self) -> Option<Instant> {
        self.window().as_ref().filter(|window| window.left_out > 0).map(|window| window.ends)
    }

    fn window(&self) -> std::sync::MutexGuard<'_, Option<Window>> {
        // No panic can leave it half-changed.
        self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Emits the events.
pub(super) struct Reporter<'a> {
    pub(super) labels: &'a Labels,
    pub(super) log: &'a LossLog,
}

impl Reporter<'_> {
    pub(super) fn lost(&self, hold: &LeaseState, reason: LostReason, now: Instant) -> bool {
        let what = match reason {
            LostReason::Expired => "lock lost: its lease expired before its holder released it",
            LostReason::Taken => "lock lost: the store no longer has this process as its holder",
            // The program's own limit, but nothing else tells which key hung.
            LostReason::MaxHold => "lock lost: it was held for `max_hold`",
            LostReason::Silent => {
                "lock lost: its body reported no progress within `progress_within`"
            }
            // A release is the normal end. A shutdown signals every holder, at each deployment. A
            // fork never had the lock.
            LostReason::Released | LostReason::ShutDown | LostReason::Forked => return false,
        };
        // Without a template, no caller has it: it is cached, or its caller has not read the grant.
        let Some(template) = hold.template() else { return false };
        if !hold.is_first_report() {
            return false;
        }
        match self.log.admit(now) {
            Admission::Log { left_out } => {
                self.counted(left_out);
                self.emit(hold, template, reason, what);
                false
            }
            Admission::Count { first } => first,
        }
    }

    fn emit(&self, hold: &LeaseState, template: &str, reason: LostReason, what: &str) {
        tracing::warn!(
            target: TARGET,
            {
                lockattr.key = hold.claim().named(),
                lockattr.template = template,
                lockattr.outcome = named(reason),
                lockattr.fencing_token = hold.fencing().get(),
                lockattr.manager = self.labels.manager(),
                lockattr.store = &*self.labels.store,
                error.type = error_type(reason)
            },
            "{what}"
        );
    }

    pub(super) fn sum_up(&self, now: Instant) {
        self.counted(self.log.take(now));
    }

    fn counted(&self, left_out: u64) {
        if left_out > 0 {
            tracing::warn!(
                target: TARGET,
                {
                    lockattr.count = left_out,
                    lockattr.manager = self.labels.manager(),
                    lockattr.store = &*self.labels.store
                },
                "locks lost: as many more as `lockattr.count` says, after the first {MOST} in {} s",
                WINDOW.as_secs()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: either limit in `admit`, or the sum in `take`.
    #[tokio::test(start_paused = true)]
    async fn a_window_has_a_bounded_number_of_lines_and_counts_the_rest() {
        let (log, now) = (LossLog::default(), Instant::now());
        for _ in 0..MOST {
            assert_eq!(log.admit(now), Admission::Log { left_out: 0 });
        }
        assert_eq!(log.next_summary(), None);
        assert_eq!(log.admit(now), Admission::Count { first: true });
        assert_eq!(log.admit(now), Admission::Count { first: false });
        assert_eq!(log.next_summary(), Some(now + WINDOW));
        assert_eq!(log.take(now), 0, "the window is not over");
        assert_eq!(log.take(now + WINDOW), 2);
        assert_eq!(log.take(now + WINDOW), 0, "a loss is counted once");
        assert_eq!(log.admit(now + WINDOW), Admission::Log { left_out: 0 });
    }

    /// Red without: what `admit` returns of the window before.
    #[tokio::test(start_paused = true)]
    async fn the_next_loss_after_a_window_reports_what_was_counted_there() {
        let (log, now) = (LossLog::default(), Instant::now());
        for _ in 0..=MOST {
            log.admit(now);
        }
        assert_eq!(log.admit(now + WINDOW), Admission::Log { left_out: 1 });
        assert_eq!(log.next_summary(), None);
    }
}
