//! Reports acquisitions and holds to the operator of the program: spans and events of `tracing`,
//! and metrics.
//!
//! Read-only. Without an observer, it costs an acquisition one check of a flag.

mod metrics;
pub(crate) mod recorder;
mod span;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;
use tracing::instrument::Instrumented;

use crate::lease::LeaseState;
use crate::lock::key::{LockKey, named};
use crate::lock::options::ResolvedOptions;
use crate::{Error, LostReason};
pub(crate) use recorder::Recorder;
use recorder::Recording;

/// The template of locks whose options name none.
pub(crate) const UNNAMED: &str = "unnamed";

/// An acquisition under way. If it is dropped before its end, its caller gave it up.
pub(crate) struct AcquireObservation {
    observed: Option<Box<Observed>>,
    /// The template of a nested call, which is counted but has neither a wait nor a span of its
    /// own.
    nested: Option<&'static str>,
    recording: Recording,
}

/// A hold under way. Dropping this ends it.
#[derive(Debug, Default)]
pub(crate) struct HoldObservation {
    observed: Option<Box<Observed>>,
    recording: Recording,
}

/// An acquisition, and then its hold.
#[derive(Debug)]
struct Observed {
    key: String,
    template: &'static str,
    /// When the wait or the hold began.
    since: Instant,
    /// The length of the hold, without the time for its release.
    held: Option<Duration>,
    span: Span,
    /// How the hold ended, if that is known better than from its state.
    outcome: Option<&'static str>,
    hold: Option<Arc<LeaseState>>,
}

impl AcquireObservation {
    /// Begins to observe an acquisition.
    pub(crate) fn begin(options: &ResolvedOptions, keys: &[LockKey], recorder: &Recorder) -> Self {
        let recording = recorder.begin(options, keys.iter().map(LockKey::as_str));
        let is_traced = span::is_enabled();
        if !(metrics::ENABLED || is_traced) {
            return Self { observed: None, nested: None, recording };
        }
        let template = template(options);
        // Metrics do not use the key.
        let key = if is_traced { named(keys) } else { String::new() };
        let span = if is_traced { span::of(&key, template, options.sharing) } else { Span::none() };
        metrics::waits(template, 1.0);
        let since = Instant::now();
        let observed =
            Observed { key, template, since, held: None, span, outcome: None, hold: None };
        Self { observed: Some(Box::new(observed)), nested: None, recording }
    }

    /// Begins to observe a nested call.
    pub(crate) fn inside(options: &ResolvedOptions, key: &str, recorder: &Recorder) -> Self {
        let recording = recorder.begin(options, [key].into_iter()).nested();
        Self { observed: None, nested: Some(template(options)), recording }
    }

    /// Records that another caller has the lock: the acquisition waits from here on.
    pub(crate) fn waits(&self) {
        self.recording.waits();
    }

    pub(crate) fn instrument<F: Future>(&self, acquisition: F) -> Instrumented<F> {
        let span = self.observed.as_ref().map_or_else(Span::none, |observed| observed.span.clone());
        tracing::Instrument::instrument(acquisition, span)
    }

    /// Records that the nested call has entered; the result observes it until its guard is dropped.
    pub(crate) fn entered(mut self, hold: &Arc<LeaseState>) -> HoldObservation {
        let mut recording = std::mem::take(&mut self.recording);
        recording.acquired(hold);
        self.nested = None;
        HoldObservation { observed: None, recording }
    }

    /// Records that the lock is acquired; the result observes the hold until its guard is dropped.
    pub(crate) fn acquired(mut self, hold: &Arc<LeaseState>) -> HoldObservation {
        let mut recording = std::mem::take(&mut self.recording);
        recording.acquired(hold);
        // A nested call is already counted by `reentered`.
        self.nested = None;
        let mut observed = self.observed.take();
        if let Some(observed) = &mut observed {
            let waited = observed.waited();
            observed.acquired(hold, waited);
        }
        HoldObservation { observed, recording }
    }

    pub(crate) fn refused(mut self, error: &Error) {
        self.recording.refused(error);
        if let Some(template) = self.nested.take() {
            metrics::acquired(template, named_error(error), None);
        }
        if let Some(observed) = self.observed.take() {
            let waited = observed.waited();
            observed.refused(error, waited);
        }
    }
}

impl Drop for AcquireObservation {
    fn drop(&mut self) {
        if let Some(observed) = self.observed.take() {
            let waited = observed.waited();
            observed.not_acquired("cancelled", waited, None);
        }
        if let Some(template) = self.nested.take() {
            metrics::acquired(template, "cancelled", None);
        }
    }
}

/// Describes the metrics to the recorder that is installed by now.
pub(crate) fn describe() {
    metrics::describe();
}

/// Counts a nested call that has re-entered a hold.
pub(crate) fn reentered(options: &ResolvedOptions) {
    metrics::acquired(template(options), "reentered", None);
}

fn template(options: &ResolvedOptions) -> &'static str {
    options.site.map_or(UNNAMED, |site| site.template)
}

pub(crate) fn renewal(outcome: &'static str) {
    metrics::command("lockattr.renewals", outcome);
}

pub(crate) fn release(outcome: &'static str) {
    metrics::command("lockattr.releases", outcome);
}

impl Observed {
    fn waited(&self) -> Duration {
        metrics::waits(self.template, -1.0);
        self.since.elapsed()
    }

    fn acquired(&mut self, hold: &Arc<LeaseState>, waited: Duration) {
        let fencing = hold.fencing();
        metrics::acquired(self.template, "acquired", Some(waited));
        metrics::holds(self.template, 1.0);
        span::acquired(&self.span, &self.key, self.template, fencing, waited);
        self.since = Instant::now();
        self.hold = Some(hold.clone());
    }

    fn refused(&self, error: &Error, waited: Duration) {
        self.not_acquired(named_error(error), waited, Some(error));
    }

    fn not_acquired(&self, outcome: &'static str, waited: Duration, error: Option<&Error>) {
        metrics::acquired(self.template, outcome, Some(waited));
        span::refused(&self.span, &self.key, self.template, outcome, waited, error);
    }
}

impl HoldObservation {
    pub(crate) fn span(&self) -> Option<&Span> {
        self.observed.as_ref().map(|observed| &observed.span)
    }

    /// Records that the holder has finished its work.
    pub(crate) fn done(&mut self) {
        if let Some(observed) = &mut self.observed {
            observed.held = Some(observed.since.elapsed());
        }
    }

    /// Records the outcome of the release.
    pub(crate) fn released(&mut self, outcome: &Result<(), Error>) {
        if let Err(Error::Lost { reason, .. }) = outcome {
            self.recording.lost(*reason);
            if let Some(observed) = &mut self.observed {
                observed.outcome = Some(named_reason(*reason));
            }
        }
    }
}

impl Drop for HoldObservation {
    fn drop(&mut self) {
        let Some(Observed { template, key, span, since, held, outcome, hold: Some(hold) }) =
            self.observed.as_deref()
        else {
            return;
        };
        let held = held.unwrap_or_else(|| since.elapsed());
        let outcome = outcome.unwrap_or_else(|| match hold.check(Instant::now()) {
            Ok(()) => "released",
            Err(reason) => named_reason(reason),
        });
        metrics::holds(template, -1.0);
        metrics::held(template, outcome, held);
        span::ended(span, key, template, hold.fencing(), outcome, held);
    }
}

/// The stable name of a refusal.
fn named_error(error: &Error) -> &'static str {
    match error {
        Error::Contended { .. } => "contended",
        Error::Store { .. } => "unavailable",
        Error::Lost { .. } => "lost",
        Error::ShutDown { .. } => "shut_down",
        Error::Deadlock { .. } => "deadlock",
        Error::Reentered { .. } => "not_reentrant",
        _ => "invalid",
    }
}

/// The stable name of the reason for an end.
fn named_reason(reason: LostReason) -> &'static str {
    match reason {
        LostReason::Expired => "expired",
        LostReason::Taken => "taken",
        LostReason::MaxHold => "max_hold",
        LostReason::ShutDown => "shut_down",
        LostReason::Released => "released",
        LostReason::Forked => "forked",
    }
}

#[cfg(test)]
mod tests;
