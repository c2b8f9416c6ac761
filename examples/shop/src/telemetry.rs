//! Logs as JSON on the standard output, metrics in the Prometheus format.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::Anything;

/// Buckets in seconds for the time until a lock is acquired or the wait ends. An uncontended lock
/// takes a round trip, 0.1 to 2 ms; a short wait queue takes some 10 ms; and the wait budget of a
/// request is a few seconds.
const WAITS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Buckets in seconds for the time that a lock is held: from one statement to a nightly job of an
/// hour. The boundary at the TTL (10 s) shows how many holds needed a renewal.
const HOLDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3600.0];

/// How often the recorder drains its buffers, which grow without it.
const UPKEEP: Duration = Duration::from_secs(5);

/// Starts both. `/metrics` returns what the handle renders.
pub(crate) fn start(log: &str) -> Result<PrometheusHandle, Anything> {
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_target(true);
    tracing_subscriber::registry().with(log.parse::<Targets>()?).with(lines).try_init()?;

    let metrics = PrometheusBuilder::new()
        // Names `lockattr.wait.duration` in seconds `lockattr_wait_duration_seconds`, as the
        // exporter of OpenTelemetry does. The dashboard in docs/grafana/ uses these names.
        .with_recommended_naming(true)
        .set_buckets_for_metric(Matcher::Full("lockattr.wait.duration".into()), WAITS)?
        .set_buckets_for_metric(Matcher::Full("lockattr.hold.duration".into()), HOLDS)?
        .install_recorder()?;
    let handle = metrics.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            handle.run_upkeep();
        }
    });
    Ok(metrics)
}
