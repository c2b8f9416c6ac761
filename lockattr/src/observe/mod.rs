//! What becomes of acquisitions and holds, for the operator of the program: spans and events of
//! `tracing`, and metrics.
//!
//! Only looks. Where no caller does, it costs an acquisition one look at a flag.

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

/// What locks are called whose options name no template.
pub(crate) const UNNAMED: &str = "unnamed";

/// An acquisition that is under way. Dropped before its end, it was given up by its caller.
pub(crate) struct AcquireObservation {
    observed: Option<Box<Observed>>,
    /// The template of a nested call, which is counted and has neither a wait nor a span of its own.
    nested: Option<&'static str>,
    recording: Recording,
}

/// A hold that is under way. Dropped, it is over.
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
    /// Since when it waits, or holds.
    since: Instant,
    /// How long it was held, without the time that giving it back took.
    held: Option<Duration>,
    span: Span,
    /// How the hold ended, where that is known better than by its state.
    outcome: Option<&'static str>,
    hold: Option<Arc<LeaseState>>,
}

impl AcquireObservation {
    /// An acquisition begins.
    pub(crate) fn begin(options: &ResolvedOptions, keys: &[LockKey], recorder: &Recorder) -> Self {
        let recording = recorder.begin(options, keys.iter().map(LockKey::as_str));
        let seen = span::is_enabled();
        if !(metrics::ENABLED || seen) {
            return Self { observed: None, nested: None, recording };
        }
        let template = template(options);
        // Metrics have no use for it.
        let key = if seen { named(keys) } else { String::new() };
        let span = if seen { span::of(&key, template, options.sharing) } else { Span::none() };
        metrics::waits(template, 1.0);
        let since = Instant::now();
        let observed =
            Observed { key, template, since, held: None, span, outcome: None, hold: None };
        Self { observed: Some(Box::new(observed)), nested: None, recording }
    }

    /// A nested call wants to enter again.
    pub(crate) fn inside(options: &ResolvedOptions, key: &str, recorder: &Recorder) -> Self {
        let recording = recorder.begin(options, [key].into_iter()).nested();
        Self { observed: None, nested: Some(template(options)), recording }
    }

    /// Others have the lock: from here on it waits.
    pub(crate) fn waits(&self) {
        self.recording.waits();
    }

    /// The acquisition, inside its span.
    pub(crate) fn instrument<F: Future>(&self, acquisition: F) -> Instrumented<F> {
        let span = self.observed.as_ref().map_or_else(Span::none, |observed| observed.span.clone());
        tracing::Instrument::instrument(acquisition, span)
    }

    /// The nested call has entered: what observes it until its guard is dropped.
    pub(crate) fn entered(mut self, hold: &Arc<LeaseState>) -> HoldObservation {
        let mut recording = std::mem::take(&mut self.recording);
        recording.acquired(hold);
        self.nested = None;
        HoldObservation { observed: None, recording }
    }

    /// The lock is acquired: what observes it until its guard is dropped.
    pub(crate) fn acquired(mut self, hold: &Arc<LeaseState>) -> HoldObservation {
        let mut recording = std::mem::take(&mut self.recording);
        recording.acquired(hold);
        // One that has entered again is counted by `reentered` already.
        self.nested = None;
        let mut observed = self.observed.take();
        if let Some(observed) = &mut observed {
            let waited = observed.waited();
            observed.acquired(hold, waited);
        }
        HoldObservation { observed, recording }
    }

    /// The acquisition has failed.
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
            observed.gave_up("cancelled", waited, None);
        }
        if let Some(template) = self.nested.take() {
            metrics::acquired(template, "cancelled", None);
        }
    }
}

/// Says what the metrics are, to the recorder that is installed by now.
pub(crate) fn describe() {
    metrics::describe();
}

/// A nested call has entered a hold again.
pub(crate) fn reentered(options: &ResolvedOptions) {
    metrics::acquired(template(options), "reentered", None);
}

fn template(options: &ResolvedOptions) -> &'static str {
    options.site.map_or(UNNAMED, |site| site.template)
}

/// A renewal was answered, or not.
pub(crate) fn renewal(outcome: &'static str) {
    metrics::command("lockattr.renewals", outcome);
}

/// A release was answered, or not.
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
        self.gave_up(named_error(error), waited, Some(error));
    }

    fn gave_up(&self, outcome: &'static str, waited: Duration, error: Option<&Error>) {
        metrics::acquired(self.template, outcome, Some(waited));
        span::refused(&self.span, &self.key, self.template, outcome, waited, error);
    }
}

impl HoldObservation {
    /// The span that the hold's body runs in.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.observed.as_ref().map(|observed| &observed.span)
    }

    /// The holder has done its work.
    pub(crate) fn done(&mut self) {
        if let Some(observed) = &mut self.observed {
            observed.held = Some(observed.since.elapsed());
        }
    }

    /// What came of giving it back.
    pub(crate) fn given_back(&mut self, answer: &Result<(), Error>) {
        if let Err(Error::Lost { reason, .. }) = answer {
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

/// The stable name of an end.
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
