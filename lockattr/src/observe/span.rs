//! The span of a lock, from the call that requests it to its end, and the events on the way.
//!
//! The names of the fields are stable. As OpenTelemetry's conventions ask, those of this library
//! begin with `lockattr.`, and `error.type` is a class of few values. Times are in seconds. Fields
//! that begin with `otel.` are for `tracing-opentelemetry`.
//!
//! Events are emitted inside the span, instead of naming it as their parent: formatters that print
//! the list of spans (the JSON format of `tracing-subscriber`) use the current span.

use std::time::Duration;

use tracing::field::{Empty, display};
use tracing::{Level, Span};

use super::TARGET;
use super::outcome::{AcquireEnd, error_type, named};
use super::telemetry::Labels;
use crate::store::Sharing;
use crate::{Error, FencingToken, LostReason};

/// Whether any subscriber may record the span.
pub(super) fn is_enabled() -> bool {
    tracing::enabled!(target: TARGET, Level::INFO)
}

/// The span of an acquisition and its hold.
pub(super) fn of(key: &str, template: &'static str, sharing: Sharing, labels: &Labels) -> Span {
    let mode = match sharing {
        Sharing::Exclusive => "exclusive",
        Sharing::Shared => "shared",
        Sharing::Permits(_) => "permits",
    };
    tracing::info_span!(
        target: TARGET,
        "lock",
        lockattr.key = key,
        lockattr.template = template,
        lockattr.mode = mode,
        lockattr.manager = labels.manager(),
        lockattr.store = &*labels.store,
        lockattr.fencing_token = Empty,
        lockattr.waited = Empty,
        lockattr.held = Empty,
        lockattr.outcome = Empty,
        lockattr.holder = Empty,
        error.type = Empty,
        otel.name = format_args!("lock {template}"),
        otel.status_code = Empty,
    )
}

pub(super) fn acquired(
    span: &Span,
    key: &str,
    template: &'static str,
    fencing: FencingToken,
    waited: Duration,
) {
    let (fencing_token, waited) = (fencing.get(), waited.as_secs_f64());
    span.record("lockattr.fencing_token", fencing_token).record("lockattr.waited", waited);
    span.in_scope(|| {
        tracing::debug!(
            target: TARGET,
            {
                lockattr.key = key,
                lockattr.template = template,
                lockattr.fencing_token = fencing_token,
                lockattr.waited = waited,
                lockattr.outcome = AcquireEnd::Acquired.name()
            },
            "lock acquired"
        );
    });
}

pub(super) fn refused(
    span: &Span,
    key: &str,
    template: &'static str,
    end: AcquireEnd,
    waited: Duration,
    error: Option<&Error>,
) {
    let (waited, outcome) = (waited.as_secs_f64(), end.name());
    span.record("lockattr.waited", waited).record("lockattr.outcome", outcome);
    let holder = match error {
        Some(Error::Contended { holder: Some(holder), .. }) => Some(display(holder)),
        _ => None,
    };
    if let Some(holder) = &holder {
        span.record("lockattr.holder", holder);
    }
    if let Some(class) = end.error_type() {
        span.record("error.type", class);
    }
    // Only what is wrong with the service. Another holder is an expected answer.
    if end == AcquireEnd::Unavailable {
        span.record("otel.status_code", "ERROR");
    }
    let message = error.map(display);
    span.in_scope(|| {
        tracing::debug!(
            target: TARGET,
            {
                lockattr.key = key,
                lockattr.template = template,
                lockattr.waited = waited,
                lockattr.outcome = outcome,
                lockattr.holder = holder,
                error.type = end.error_type(),
                error.message = message
            },
            "lock not acquired"
        );
    });
}

pub(super) fn ended(
    span: &Span,
    key: &str,
    template: &'static str,
    fencing: FencingToken,
    reason: LostReason,
    held: Duration,
) {
    let (fencing_token, held) = (fencing.get(), held.as_secs_f64());
    let (outcome, class) = (named(reason), error_type(reason));
    span.record("lockattr.held", held).record("lockattr.outcome", outcome);
    if let Some(class) = class {
        span.record("error.type", class).record("otel.status_code", "ERROR");
    }
    span.in_scope(|| {
        tracing::debug!(
            target: TARGET,
            {
                lockattr.key = key,
                lockattr.template = template,
                lockattr.fencing_token = fencing_token,
                lockattr.held = held,
                lockattr.outcome = outcome,
                error.type = class
            },
            "lock released"
        );
    });
}
