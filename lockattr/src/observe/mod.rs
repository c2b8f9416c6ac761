//! Reports acquisitions and holds to the operator of the program: spans and events of `tracing`,
//! and metrics.
//!
//! Read-only. Without an observer, it costs an acquisition one check of a flag.

mod losses;
mod metrics;
mod outcome;
pub(crate) mod recorder;
mod span;
mod telemetry;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;
use tracing::instrument::Instrumented;

use crate::lease::LeaseState;
use crate::lock::key::{LockKey, named};
use crate::lock::options::ResolvedOptions;
use crate::lock::site::Site;
use crate::{Error, LostReason};
use metrics::{Metrics, OfTemplate};
use outcome::{AcquireEnd, named as named_reason};
pub(crate) use recorder::Recorder;
use recorder::Recording;
pub(crate) use telemetry::Telemetry;

/// The target of the span and the events of a lock.
const TARGET: &str = "lockattr";

/// The template of locks whose options name none.
pub(crate) const UNNAMED: &str = "unnamed";

/// An acquisition under way. If it is dropped before its end, its caller gave it up.
pub(crate) struct AcquireObservation {
    observed: Option<Box<Observed>>,
    /// The metrics of a nested call, which is counted but has neither a wait nor a span of its
    /// own.
    nested: Option<Handles>,
    recording: Recording,
}

/// A hold under way. Dropping this ends it.
#[derive(Debug, Default)]
pub(crate) struct HoldObservation {
    observed: Option<Box<Observed>>,
    recording: Recording,
}

/// The metrics of one template. Shared, so that a hold ends under the labels under which it began.
#[cfg(feature = "metrics")]
type Handles = Arc<OfTemplate>;
#[cfg(not(feature = "metrics"))]
type Handles = OfTemplate;

/// An acquisition, and then its hold.
#[derive(Debug)]
struct Observed {
    key: String,
    template: &'static str,
    handles: Handles,
    /// When the wait or the hold began.
    since: Instant,
    /// The length of the hold, without the time for its release.
    held: Option<Duration>,
    span: Span,
    /// How the hold ended, if that is known better than from its state.
    outcome: Option<LostReason>,
    hold: Option<Arc<LeaseState>>,
}

impl AcquireObservation {
    /// Begins to observe an acquisition.
    pub(crate) fn begin(
        options: &ResolvedOptions,
        keys: &[LockKey],
        recorder: &Recorder,
        telemetry: &Telemetry,
    ) -> Self {
        let recording = recorder.begin(options, keys.iter().map(LockKey::as_str));
        let is_traced = span::is_enabled();
        if !(metrics::ENABLED || is_traced) {
            return Self { observed: None, nested: None, recording };
        }
        let template = template(options.site);
        // Metrics do not use the key.
        let key = if is_traced { named(keys) } else { String::new() };
        let span = match is_traced {
            true => span::of(&key, template, options.sharing, telemetry.labels()),
            false => Span::none(),
        };
        let handles = telemetry.handles(template);
        handles.waits(1.0);
        let since = Instant::now();
        let (held, outcome, hold) = (None, None, None);
        let observed = Observed { key, template, handles, since, held, span, outcome, hold };
        Self { observed: Some(Box::new(observed)), nested: None, recording }
    }

    /// Begins to observe a nested call.
    pub(crate) fn inside(
        options: &ResolvedOptions,
        key: &str,
        recorder: &Recorder,
        telemetry: &Telemetry,
    ) -> Self {
        let recording = recorder.begin(options, [key].into_iter()).nested();
        let handles = telemetry.handles(template(options.site));
        Self { observed: None, nested: Some(handles), recording }
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
        if let Some(handles) = self.nested.take() {
            handles.acquired(AcquireEnd::of(error), None);
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
            observed.not_acquired(AcquireEnd::Cancelled, waited, None);
        }
        if let Some(handles) = self.nested.take() {
            handles.acquired(AcquireEnd::Cancelled, None);
        }
    }
}

/// Describes the metrics to the recorder that is installed by now.
pub(crate) fn describe() {
    Metrics::describe();
}

/// The template of a lock: that of its site.
pub(crate) fn template(site: Option<Site>) -> &'static str {
    site.map_or(UNNAMED, |site| site.template)
}

impl Telemetry {
    fn handles(&self, template: &'static str) -> Handles {
        self.metrics.of(template, self.labels())
    }

    /// Counts a nested call that has re-entered a hold.
    pub(crate) fn reentered(&self, options: &ResolvedOptions) {
        self.handles(template(options.site)).acquired(AcquireEnd::Reentered, None);
    }
}

impl Observed {
    fn waited(&self) -> Duration {
        self.handles.waits(-1.0);
        self.since.elapsed()
    }

    fn acquired(&mut self, hold: &Arc<LeaseState>, waited: Duration) {
        let fencing = hold.fencing();
        self.handles.acquired(AcquireEnd::Acquired, Some(waited));
        self.handles.holds(1.0);
        span::acquired(&self.span, &self.key, self.template, fencing, waited);
        self.since = Instant::now();
        self.hold = Some(hold.clone());
    }

    fn refused(&self, error: &Error, waited: Duration) {
        self.not_acquired(AcquireEnd::of(error), waited, Some(error));
    }

    fn not_acquired(&self, end: AcquireEnd, waited: Duration, error: Option<&Error>) {
        self.handles.acquired(end, Some(waited));
        span::refused(&self.span, &self.key, self.template, end, waited, error);
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
                observed.outcome = Some(*reason);
            }
        }
    }
}

impl Drop for HoldObservation {
    fn drop(&mut self) {
        let Some(observed) = self.observed.as_deref() else { return };
        let Observed { template, key, handles, span, since, held, outcome, hold } = observed;
        let Some(hold) = hold else { return };
        let held = held.unwrap_or_else(|| since.elapsed());
        let outcome = outcome.unwrap_or_else(|| match hold.check(Instant::now()) {
            Ok(()) => LostReason::Released,
            Err(reason) => reason,
        });
        handles.holds(-1.0);
        handles.held(named_reason(outcome), held);
        span::ended(span, key, template, hold.fencing(), outcome, held);
    }
}

#[cfg(test)]
mod tests;
