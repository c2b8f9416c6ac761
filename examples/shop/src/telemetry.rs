//! Logs as JSON on the standard output, metrics in Prometheus' format.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::Anything;

/// Seconds until a lock was acquired or refused. A lock that is free is a round trip, 0.1 to 2 ms; a short
/// line is some 10 ms; and the wait budget of a request ends after seconds.
const WAITS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Seconds that a lock was held: from one statement to a nightly job of an hour. A step at the TTL (10 s)
/// shows how many holds needed a renewal.
const HOLDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3600.0];

/// What is not drained in time is kept in memory.
const UPKEEP: Duration = Duration::from_secs(5);

/// Starts both. What the handle renders is what `/metrics` answers.
pub(crate) fn start(log: &str) -> Result<PrometheusHandle, Anything> {
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_target(true);
    tracing_subscriber::registry().with(log.parse::<Targets>()?).with(lines).try_init()?;

    let metrics = PrometheusBuilder::new()
        // `lockattr.wait.duration` in seconds is `lockattr_wait_duration_seconds`, as OpenTelemetry's
        // own exporter has it: what docs/grafana/ asks for.
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
