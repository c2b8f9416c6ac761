//! Metrics, through the `metrics` facade: by template and outcome, never by key.
//!
//! The docs and the dashboard use these names: change them there as well.

use std::time::Duration;

#[cfg(feature = "metrics")]
use metrics::{counter, gauge, histogram};

/// Whether metrics are compiled in.
pub(super) const ENABLED: bool = cfg!(feature = "metrics");

/// Changes the number of acquisitions under way.
pub(super) fn waits(template: &'static str, change: f64) {
    #[cfg(feature = "metrics")]
    gauge!("lockattr.waiting", "template" => template).increment(change);
    #[cfg(not(feature = "metrics"))]
    let _ = (template, change);
}

/// Changes the number of held locks.
pub(super) fn holds(template: &'static str, change: f64) {
    #[cfg(feature = "metrics")]
    gauge!("lockattr.held", "template" => template).increment(change);
    #[cfg(not(feature = "metrics"))]
    let _ = (template, change);
}

/// Counts an acquisition that is over; `waited` is `None` for a nested call.
pub(super) fn acquired(template: &'static str, outcome: &'static str, waited: Option<Duration>) {
    #[cfg(feature = "metrics")]
    {
        let labels = [("template", template), ("outcome", outcome)];
        counter!("lockattr.acquisitions", &labels).increment(1);
        if let Some(waited) = waited {
            histogram!("lockattr.wait.duration", &labels).record(waited);
        }
    }
    #[cfg(not(feature = "metrics"))]
    let _ = (template, outcome, waited);
}

/// Records a hold that is over.
pub(super) fn held(template: &'static str, outcome: &'static str, held: Duration) {
    #[cfg(feature = "metrics")]
    histogram!("lockattr.hold.duration", "template" => template, "outcome" => outcome).record(held);
    #[cfg(not(feature = "metrics"))]
    let _ = (template, outcome, held);
}

/// Counts a renewal or a release, by outcome.
pub(super) fn command(name: &'static str, outcome: &'static str) {
    #[cfg(feature = "metrics")]
    counter!(name, "outcome" => outcome).increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = (name, outcome);
}

/// Describes each metric and its unit to the installed recorder.
pub(super) fn describe() {
    #[cfg(feature = "metrics")]
    described();
}

#[cfg(feature = "metrics")]
fn described() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_counter!("lockattr.acquisitions", Unit::Count, "Completed acquisitions, by outcome");
    describe_histogram!(
        "lockattr.wait.duration",
        Unit::Seconds,
        "From the call to the lock, or to the refusal"
    );
    describe_histogram!(
        "lockattr.hold.duration",
        Unit::Seconds,
        "From the acquisition to the end of the hold, by outcome"
    );
    describe_gauge!("lockattr.held", Unit::Count, "Locks that this process holds");
    describe_gauge!("lockattr.waiting", Unit::Count, "Acquisitions under way in this process");
    describe_counter!("lockattr.renewals", Unit::Count, "Renewals, by outcome");
    describe_counter!("lockattr.releases", Unit::Count, "Releases, by outcome");
}
