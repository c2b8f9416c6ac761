//! What lockattr adds to the client's settings, whether a URL or the program made them.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use crate::lock::server_options::ServerOptions;

/// Adds what is missing. `is_set` says which settings of libpq the caller chose.
pub(super) fn complete(server: &mut Config, is_set: impl Fn(&str) -> bool, timing: &ServerOptions) {
    if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
        server.host("localhost");
    }
    if server.get_hosts().is_empty() {
        // A handshake needs a name, and the certificate may have the address.
        for address in server.get_hostaddrs().to_vec() {
            server.host(address.to_string());
        }
    }
    if server.get_application_name().is_none() {
        server.application_name("lockattr");
    }
    let servers = server.get_hosts().len().max(server.get_hostaddrs().len());
    if servers > 1 && !is_set("target_session_attrs") {
        // Of several servers, only the primary can lock.
        server.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    detect_vanished_host(server, is_set, timing);
    server.connect_timeout(timing.connect_timeout);
}

/// Which of these settings differ from the client's defaults.
pub(super) fn set_in(server: &Config) -> impl Fn(&str) -> bool + use<> {
    let (server, defaults) = (server.clone(), Config::new());
    move |name| match name {
        "target_session_attrs" => {
            server.get_target_session_attrs() != defaults.get_target_session_attrs()
        }
        "keepalives_idle" => server.get_keepalives_idle() != defaults.get_keepalives_idle(),
        "keepalives_interval" => server.get_keepalives_interval().is_some(),
        "keepalives_retries" => server.get_keepalives_retries().is_some(),
        "tcp_user_timeout" => server.get_tcp_user_timeout().is_some(),
        _ => false,
    }
}

/// Makes the system close a connection whose other end no longer exists: after `heartbeat` without
/// traffic and three probes without an answer, each of which has `response_timeout`. The system's own
/// default is two hours, and a session that waits in the server's queue sends no checks.
fn detect_vanished_host(
    server: &mut Config,
    is_set: impl Fn(&str) -> bool,
    timing: &ServerOptions,
) {
    const PROBES: u32 = 3;
    // The system counts in whole seconds, up to the second of these.
    let seconds = |time: Duration| {
        let up = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
        Duration::from_secs(up.clamp(1, 32_767))
    };
    let (idle, interval) = (seconds(timing.heartbeat), seconds(timing.response_timeout));
    if !is_set("keepalives_idle") {
        server.keepalives_idle(idle);
    }
    if !is_set("keepalives_interval") {
        server.keepalives_interval(interval);
    }
    if !is_set("keepalives_retries") {
        server.keepalives_retries(PROBES);
    }
    // Without it, the system repeats data on its way for a quarter of an hour. It also replaces the
    // number of probes, so it follows those that were chosen.
    if !is_set("tcp_user_timeout") {
        const LONGEST: Duration = Duration::from_secs(2_000_000);
        let interval = server.get_keepalives_interval().unwrap_or(interval);
        let probes = interval.saturating_mul(server.get_keepalives_retries().unwrap_or(PROBES));
        let all = server.get_keepalives_idle().saturating_add(probes);
        server.tcp_user_timeout(all.min(LONGEST));
    }
}

/// The servers and the database, for errors: without user and password.
pub(super) fn shown(server: &Config) -> String {
    let (hosts, addresses) = (server.get_hosts(), server.get_hostaddrs());
    let ports = server.get_ports();
    let of = |index: usize| {
        let host = match hosts.get(index) {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => addresses.get(index).map(ToString::to_string).unwrap_or_default(),
        };
        let port = ports.get(index).or(ports.first());
        port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"))
    };
    let all: Vec<_> = (0..hosts.len().max(addresses.len())).map(of).collect();
    format!("postgres://{}/{}", all.join(","), server.get_dbname().unwrap_or_default())
}
