//! The settings in a PostgreSQL URL: the server's address, the login, and the timeouts.

use tokio_postgres::config::SslMode;
use url::Url;

use super::client_settings;
use super::connect::Connector;
use super::libpq::Libpq;
use super::negotiation;
use super::pooler::PoolerCheck;
use super::schema::Schema;
use super::tls;
use crate::Error;
use crate::engines::sql::sweep::SweepWarning;
use crate::lock::server_options::ServerOptions;
use crate::store::url::{shown, unknown_setting};

#[derive(Clone)]
pub(super) struct Config {
    pub(super) server: tokio_postgres::Config,
    pub(super) connector: Connector,
    /// The URL without its password, for errors.
    pub(super) address: String,
    pub(super) timing: ServerOptions,
    pub(super) schema: Schema,
    /// The result of the check for a pooler.
    pub(super) pooler_check: PoolerCheck,
    pub(super) sweep_warning: SweepWarning,
}

const OWN: &[&str] = &[
    "connections",
    "connect_timeout",
    "response_timeout",
    "heartbeat",
    "ca",
    "client_cert",
    "cert",
    "client_key",
    "key",
];

/// libpq's names of the files for TLS, and ours.
const FILES: [(&str, &str); 3] =
    [("sslrootcert", "ca"), ("sslcert", "client_cert"), ("sslkey", "client_key")];

const POSTGRES_NAMES: &str = ", and for PostgreSQL `lock`, `max_sessions` with `lock=session`, \
     `schema`, `connections`, `connect_timeout`, `response_timeout`, `heartbeat`, `ca`, `client_cert`, `client_key`, \
     and of libpq's `host`, `hostaddr`, `port`, `user`, `password`, \
     `dbname`, `options`, `application_name`, `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, \
     `sslnegotiation`, `channel_binding`, \
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
        let mut sslmode = None;
        let mut system_only = false;
        for (name, value) in query {
            let ours = FILES.iter().find(|(theirs, _)| theirs == name).map(|(_, ours)| *ours);
            if ours.is_some_and(|ours| query.iter().any(|(name, _)| is_same_file(name, ours))) {
                let sentence =
                    format!("the URL names the file of `{name}` twice: leave one of them out");
                return Err(Error::InvalidOptions(sentence));
            }
            let name = ours.unwrap_or(name);
            match name {
                "sslmode" => sslmode = Some(value.as_str()),
                // libpq's name of the system's authorities.
                "ca" if value == "system" => system_only = true,
                // sqlx writes it into every URL. It says how sqlx itself keeps its statements.
                "statement-cache-capacity" => {}
                "schema" => timing.schema = Some(value.clone()),
                _ if Libpq::NAMES.contains(&name) => libpq.add(name, value)?,
                _ if OWN.contains(&name) && timing.set(name, value)? => {}
                _ => return Err(unknown_setting(query, name, POSTGRES_NAMES)),
            }
        }
        if system_only {
            timing.tls.ca = None;
            if !matches!(sslmode.get_or_insert("verify-full"), &mut "verify-full") {
                return Err(Error::InvalidOptions(
                    "`sslrootcert=system` trusts many authorities, so the host's name must be verified \
                     too: write `sslmode=verify-full`"
                        .into(),
                ));
            }
        }
        timing.check()?;
        let invalid = |error: &dyn std::error::Error| {
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Error::InvalidOptions(format!("the URL for {address} is invalid: {reason}"))
        };
        let mut server: tokio_postgres::Config =
            libpq.text.parse().map_err(|error: tokio_postgres::Error| invalid(&error))?;
        client_settings::complete(&mut server, |name| libpq.has(name), &timing);
        let connector = tls::connector(&mut server, sslmode, &timing.tls)?;
        negotiation::check(&server)?;
        let schema = Schema::new(timing.schema.as_deref())?;
        let (pooler_check, sweep_warning) = Default::default();
        Ok(Self { server, connector, address, timing, schema, pooler_check, sweep_warning })
    }

    /// The settings and the TLS of the program's own client.
    pub(super) fn of(
        mut server: tokio_postgres::Config,
        connector: Connector,
        timing: ServerOptions,
    ) -> Result<Self, Error> {
        timing.check()?;
        let is_set = client_settings::set_in(&server);
        client_settings::complete(&mut server, is_set, &timing);
        if !connector.has_tls() && server.get_ssl_mode() == SslMode::Prefer {
            // A program that chooses `NoTls` says that the network is its own.
            server.ssl_mode(SslMode::Disable);
        }
        negotiation::check(&server)?;
        let address = client_settings::shown(&server);
        let schema = Schema::new(timing.schema.as_deref())?;
        let (pooler_check, sweep_warning) = Default::default();
        Ok(Self { server, connector, address, timing, schema, pooler_check, sweep_warning })
    }
}

/// Whether a setting names the file that we call `ours`, without its name in libpq.
fn is_same_file(name: &str, ours: &str) -> bool {
    name == ours || ours.strip_prefix("client_") == Some(name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
            ("", 7, 1),
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
