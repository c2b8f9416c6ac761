//! The span of a lock, from the call that requests it to its end, and the events on the way.
//!
//! The names of the fields are stable: `key`, `template`, `mode`, `fencing_token`, `waited`, `held`
//! (both in seconds), `outcome`, `holder`. Those that begin with `otel.` are for
//! `tracing-opentelemetry`.
//!
//! Events are emitted inside the span, instead of naming it as their parent: formatters that print
//! the list of spans (the JSON format of `tracing-subscriber`) use the current span.

use std::time::Duration;

use tracing::field::{Empty, display};
use tracing::{Level, Span};

use crate::store::Sharing;
use crate::{Error, FencingToken};

const TARGET: &str = "lockattr";

/// Whether any subscriber may record the span.
pub(super) fn is_enabled() -> bool {
    tracing::enabled!(target: TARGET, Level::INFO)
}

/// The span of an acquisition and its hold.
pub(super) fn of(key: &str, template: &'static str, sharing: Sharing) -> Span {
    let mode = match sharing {
        Sharing::Exclusive => "exclusive",
        Sharing::Shared => "shared",
        Sharing::Permits(_) => "permits",
    };
    tracing::info_span!(
        target: TARGET,
        "lock",
        key,
        template,
        mode,
        fencing_token = Empty,
        waited = Empty,
        held = Empty,
        outcome = Empty,
        holder = Empty,
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
    span.record("fencing_token", fencing_token).record("waited", waited);
    span.in_scope(|| {
        tracing::debug!(
            target: TARGET, key, template, fencing_token, waited, outcome = "acquired",
            "lock acquired"
        );
    });
}

pub(super) fn refused(
    span: &Span,
    key: &str,
    template: &'static str,
    outcome: &'static str,
    waited: Duration,
    error: Option<&Error>,
) {
    let waited = waited.as_secs_f64();
    span.record("waited", waited).record("outcome", outcome);
    let holder = match error {
        Some(Error::Contended { holder: Some(holder), .. }) => Some(display(holder)),
        _ => None,
    };
    if let Some(holder) = &holder {
        span.record("holder", holder);
    }
    if outcome == "unavailable" {
        span.record("otel.status_code", "ERROR");
    }
    let error = error.map(display);
    span.in_scope(|| {
        tracing::debug!(
            target: TARGET, key, template, waited, outcome, holder, error, "lock not acquired"
        );
    });
}

pub(super) fn ended(
    span: &Span,
    key: &str,
    template: &'static str,
    fencing: FencingToken,
    outcome: &'static str,
    held: Duration,
) {
    let (fencing_token, held) = (fencing.get(), held.as_secs_f64());
    span.record("held", held).record("outcome", outcome);
    if outcome != "released" {
        span.record("otel.status_code", "ERROR");
    }
    span.in_scope(|| {
        tracing::debug!(
            target: TARGET, key, template, fencing_token, held, outcome, "lock released"
        );
    });
}
