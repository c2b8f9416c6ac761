//! What all observations of one manager have in common: its labels, its metrics, its lost leases.

use std::borrow::Cow;
use std::sync::OnceLock;

use tokio::time::Instant;

use super::losses::{LossLog, Reporter, WINDOW};
use super::metrics::Metrics;
use crate::LostReason;
use crate::lease::LeaseState;

/// The label of a manager that was installed under no name.
const UNINSTALLED: &str = "default";

/// Observes one manager.
#[derive(Debug)]
pub(crate) struct Telemetry {
    labels: Labels,
    pub(super) metrics: Metrics,
    losses: LossLog,
}

/// What tells the series and events of one manager from those of another.
#[derive(Debug)]
pub(super) struct Labels {
    /// The kind of the store, and never its address.
    pub(super) store: Cow<'static, str>,
    /// The name under which the manager was installed.
    name: OnceLock<String>,
}

impl Labels {
    pub(super) fn manager(&self) -> &str {
        self.name.get().map_or(UNINSTALLED, String::as_str)
    }
}

impl Telemetry {
    pub(crate) fn new(store: Cow<'static, str>) -> Self {
        let labels = Labels { store, name: OnceLock::new() };
        Self { labels, metrics: Default::default(), losses: LossLog::default() }
    }

    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Names the manager. The first name stays, so that its series do not end when it is installed
    /// again.
    pub(crate) fn name(&self, name: &str) {
        if self.labels.name.set(name.to_owned()).is_ok() {
            // A lock that is held keeps the labels under which it was counted.
            self.metrics.forget_handles();
        }
    }

    /// Counts a renewal by its outcome.
    pub(crate) fn renewal(&self, outcome: &'static str) {
        self.metrics.count_command("lockattr.renewals", outcome, &self.labels);
    }

    /// Counts a release by its outcome.
    pub(crate) fn release(&self, outcome: &'static str) {
        self.metrics.count_command("lockattr.releases", outcome, &self.labels);
    }

    /// Counts what became of a result that is shared.
    #[cfg(feature = "share")]
    pub(crate) fn shared_result(&self, outcome: &'static str) {
        self.metrics.count_command("lockattr.shared_results", outcome, &self.labels);
    }

    /// Reports that a lease was lost, once for each lease. Returns whether
    /// [`sum_up`](Self::sum_up) has to be called [later](Self::next_summary), because the loss was
    /// only counted.
    ///
    /// Emits events, so no mutex may be locked.
    pub(crate) fn lost(&self, hold: &LeaseState, reason: LostReason) -> bool {
        Reporter { labels: &self.labels, log: &self.losses }.lost(hold, reason, Instant::now())
    }

    /// Reports the number of losses that were only counted, if it is time.
    pub(crate) fn sum_up(&self, now: Instant) {
        Reporter { labels: &self.labels, log: &self.losses }.sum_up(now);
    }

    /// The same now, because no task will do it later.
    pub(crate) fn sum_up_now(&self) {
        self.sum_up(Instant::now() + WINDOW);
    }

    /// When to [sum up](Self::sum_up).
    pub(crate) fn next_summary(&self) -> Option<Instant> {
        self.losses.next_summary()
    }
}
