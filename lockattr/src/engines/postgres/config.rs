//! The settings in a PostgreSQL URL: the server's address, the login, and the timeouts.

use std::fmt::Write;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use url::Url;

use super::pooler::PoolerCheck;
use crate::Error;
use crate::lock::server_options::ServerOptions;
use crate::store::url::{shown, unknown_setting};

#[derive(Clone)]
pub(super) struct Config {
    pub(super) server: tokio_postgres::Config,
    /// The URL without its password, for errors.
    pub(super) address: String,
    pub(super) timing: ServerOptions,
    /// The result of the check for a pooler.
    pub(super) pooler_check: PoolerCheck,
}

/// The query settings that go to the client, as libpq names them.
const LIBPQ: &[&str] = &[
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslmode",
    "sslnegotiation",
    "channel_binding",
    "target_session_attrs",
    "load_balance_hosts",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "tcp_user_timeout",
];

const OWN: &[&str] = &["connections", "connect_timeout", "response_timeout", "heartbeat"];

const POSTGRES_NAMES: &str = ", and for PostgreSQL `lock`, `max_sessions` with `lock=session`, \
     `connections`, `connect_timeout`, `response_timeout`, `heartbeat`, and of libpq's `host`, `hostaddr`, `port`, `user`, `password`, \
     `dbname`, `options`, `application_name`, `sslmode`, `channel_binding`, \
     `target_session_attrs`, `load_balance_hosts`, `keepalives`, `keepalives_idle`, \
     `keepalives_interval`, `keepalives_retries`, `tcp_user_timeout`";

impl Config {
    pub(super) fn read(
        urls: &[Url],
        query: &[(String, String)],
        mut timing: ServerOptions,
    ) -> Result<Self, Error> {
        let address = shown(urls);
        let mut libpq = Libpq::default();
        libpq.add_url(urls)?;
        for (name, value) in query {
            if LIBPQ.contains(&name.as_str()) {
                libpq.add(name, value)?;
            } else if !OWN.contains(&name.as_str()) || !timing.set(name, value)? {
                return Err(unknown_setting(query, name, POSTGRES_NAMES));
            }
        }
        timing.check()?;
        let invalid = |error: &dyn std::error::Error| {
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Error::InvalidOptions(format!("the URL for {address} is invalid: {reason}"))
        };
        let mut server: tokio_postgres::Config =
            libpq.text.parse().map_err(|error: tokio_postgres::Error| invalid(&error))?;
        if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
            server.host("localhost");
        }
        if server.get_application_name().is_none() {
            server.application_name("lockattr");
        }
        if server.get_hosts().len() > 1 && !libpq.has("target_session_attrs") {
            // Of several servers, only the primary can lock.
            server.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if server.get_ssl_mode() == SslMode::Require {
            return Err(Error::InvalidOptions(
                "the URL sets `sslmode=require`, and this store does not support TLS yet: connect over a \
                 Unix socket, a tunnel or a network of your own, with `sslmode=disable`"
                    .into(),
            ));
        }
        detect_vanished_host(&mut server, &libpq, &timing);
        // A server that does not answer must leave time for the others.
        let servers = server.get_hosts().len().max(server.get_hostaddrs().len()).max(1);
        let servers = u32::try_from(servers).unwrap_or(u32::MAX);
        server.connect_timeout(timing.connect_timeout / servers);
        Ok(Self { server, address, timing, pooler_check: PoolerCheck::default() })
    }
}

/// Makes the system close a connection whose other end no longer exists: after `heartbeat` without
/// traffic and three probes without an answer, each of which has `response_timeout`. The system's own
/// default is two hours, and a session that waits in the server's queue sends no checks.
fn detect_vanished_host(
    server: &mut tokio_postgres::Config,
    libpq: &Libpq,
    timing: &ServerOptions,
) {
    const PROBES: u32 = 3;
    // The system counts in whole seconds, up to the second of these.
    let seconds = |time: Duration| {
        let up = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
        Duration::from_secs(up.clamp(1, 32_767))
    };
    let (idle, interval) = (seconds(timing.heartbeat), seconds(timing.response_timeout));
    if !libpq.has("keepalives_idle") {
        server.keepalives_idle(idle);
    }
    if !libpq.has("keepalives_interval") {
        server.keepalives_interval(interval);
    }
    if !libpq.has("keepalives_retries") {
        server.keepalives_retries(PROBES);
    }
    // Without it, the system repeats data on its way for a quarter of an hour. It also replaces the
    // number of probes, so it follows those of the URL.
    if !libpq.has("tcp_user_timeout") {
        const LONGEST: Duration = Duration::from_secs(2_000_000);
        let interval = server.get_keepalives_interval().unwrap_or(interval);
        let probes = interval.saturating_mul(server.get_keepalives_retries().unwrap_or(PROBES));
        let all = server.get_keepalives_idle().saturating_add(probes);
        server.tcp_user_timeout(all.min(LONGEST));
    }
}

/// A connection string for the client, and the names that it sets.
#[derive(Default)]
struct Libpq {
    text: String,
    names: Vec<String>,
}

impl Libpq {
    /// Adds the part before the query: hosts and ports, user and password, the database.
    fn add_url(&mut self, urls: &[Url]) -> Result<(), Error> {
        let url = &urls[0];
        let hosts: Vec<_> =
            urls.iter().map(|url| decoded(url.host_str().unwrap_or_default())).collect();
        let hosts = hosts.iter().map(|host| host.trim_start_matches('[').trim_end_matches(']'));
        let hosts: Vec<_> = hosts.collect();
        if urls.len() > 1 || !hosts[0].is_empty() {
            let ports = urls.iter().map(|url| url.port().unwrap_or(5432).to_string());
            self.add("host", &hosts.join(","))?;
            self.add("port", &ports.collect::<Vec<_>>().join(","))?;
        }
        let parts = [
            ("user", url.username()),
            ("password", url.password().unwrap_or_default()),
            ("dbname", url.path().trim_start_matches('/')),
        ];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            self.add(name, &decoded(value))?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), Error> {
        if self.has(name) {
            let sentence = format!("the URL sets `{name}` twice: leave one of them out");
            return Err(Error::InvalidOptions(sentence));
        }
        let value = value.replace('\\', "\\\\").replace('\'', "\\'");
        // Writing to a string cannot fail.
        let _never = write!(self.text, "{name}='{value}' ");
        self.names.push(name.to_owned());
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::url::StoreUrl;

    fn read(url: &str) -> tokio_postgres::Config {
        let StoreUrl { urls, query } = StoreUrl::parse(url).unwrap();
        Config::read(&urls, &query, ServerOptions::default()).unwrap().server
    }

    /// Red without: any of the four settings, or the whole seconds.
    #[test]
    fn a_connection_to_a_vanished_host_ends_after_the_heartbeat_and_three_probes() {
        let seconds = Duration::from_secs;
        for (query, idle, interval) in [
            ("", 5, 1),
            ("?heartbeat=100ms&response_timeout=1500ms", 1, 2),
            ("?heartbeat=1y&response_timeout=1y", 32_767, 32_767),
        ] {
            let server = read(&format!("postgres://h/db{query}"));
            assert!(server.get_keepalives());
            assert_eq!(server.get_keepalives_idle(), seconds(idle), "{query}");
            assert_eq!(server.get_keepalives_interval(), Some(seconds(interval)), "{query}");
            assert_eq!(server.get_keepalives_retries(), Some(3));
            let whole = Some(&seconds(idle + 3 * interval)).copied();
            assert_eq!(server.get_tcp_user_timeout().copied(), whole, "{query}");
        }
    }

    /// Red without: any of the four conditions.
    #[test]
    fn a_keepalive_of_the_url_wins() {
        let server = read(
            "postgres://h/db?keepalives_idle=7&keepalives_interval=8&keepalives_retries=9\
             &tcp_user_timeout=10",
        );
        let seconds = Duration::from_secs;
        assert_eq!(server.get_keepalives_idle(), seconds(7));
        assert_eq!(server.get_keepalives_interval(), Some(seconds(8)));
        assert_eq!(server.get_keepalives_retries(), Some(9));
        assert_eq!(server.get_tcp_user_timeout().copied(), Some(seconds(10)));
        assert!(!read("postgres://h/db?keepalives=0").get_keepalives());
        let server = read("postgres://h/db?keepalives_idle=60&keepalives_retries=9");
        assert_eq!(server.get_tcp_user_timeout().copied(), Some(seconds(60 + 9)));
    }
}
