//! The settings in a MySQL URL: the server's address, the login, and the timeouts.

use std::borrow::Cow;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder};
use percent_encoding::percent_decode_str;
use url::Url;

use super::login::Login;
use super::sessions::MAX_SESSIONS;
use super::tls::{self, Tls};
use crate::Error;
use crate::engines::sql::sweep::SweepWarning;
use crate::engines::sql::{check_max_sessions, read_max_sessions};
use crate::lock::server_options::ServerOptions;
use crate::store::url::{shown, unknown_setting};

/// The query settings besides those of the manager.
const NAMES: &str = ", and for MySQL `connections`, `connect_timeout`, `response_timeout`, \
                     `heartbeat`, `ssl-mode`, `ca`, `client_cert`, `client_key`, `lock`, \
                     `max_sessions` with `lock=session`";

/// Must hold a batch. The server's own limit is at least as large.
const LARGEST_PACKET: usize = 1 << 24;

/// The shortest time after which the server ends an idle connection that has no lock.
const MIN_IDLE: Duration = Duration::from_secs(10);

/// The longest `wait_timeout` of a server.
const MAX_IDLE: u64 = 31_536_000;

#[derive(Clone)]
pub(super) struct Config {
    pub(super) login: Login,
    /// The URL without its password, for errors.
    pub(super) address: String,
    pub(super) timing: ServerOptions,
    /// Whether locks belong to connections instead of having leases.
    pub(super) sessions: bool,
    /// The most connections for locks that belong to connections.
    pub(super) max_sessions: usize,
    pub(super) sweep_warning: SweepWarning,
}

impl Config {
    /// How long a connection may be idle until the server ends it. The heartbeat keeps those of a
    /// living process open.
    pub(super) fn idle(&self) -> Duration {
        idle(&self.timing)
    }

    pub(super) fn read(
        urls: Vec<Url>,
        query: &[(String, String)],
        mut timing: ServerOptions,
    ) -> Result<Self, Error> {
        let (mut sessions, mut max_sessions, mut mode) = (false, None, None);
        for (name, value) in query {
            match name.as_str() {
                "lock" => sessions = is_session(value)?,
                "connections" | "connect_timeout" | "response_timeout" | "heartbeat" | "ca"
                | "client_cert" | "client_key" | "cert" | "key" => {
                    timing.set(name, value)?;
                }
                "ssl-mode" => mode = Some(value.as_str()),
                "ssl_mode" | "sslmode" | "sslMode" | "tls" => return Err(tls::other_name(name)),
                "max_sessions" => max_sessions = Some(read_max_sessions(value)?),
                _ => return Err(unknown_setting(query, name, NAMES)),
            }
        }
        if max_sessions.is_some() && !sessions {
            return Err(unknown_setting(query, "max_sessions", NAMES));
        }
        let max_sessions = max_sessions.unwrap_or(MAX_SESSIONS);
        timing.check()?;
        let address = shown(&urls);
        let Ok([url]) = <[Url; 1]>::try_from(urls) else {
            return Err(invalid("a `mysql://` URL takes one host: that of the primary"));
        };
        let (opts, database) = login(&url)?;
        let opts = with_settings(opts, &timing).init(session_settings(&timing, &database));
        let host = url.host_str().unwrap_or_default();
        let (credentials, tls) = (timing.credentials.clone(), Tls::read(host, mode, &timing.tls)?);
        let login = Login { opts: opts.into(), credentials, tls };
        let sweep_warning = SweepWarning::default();
        Ok(Self { login, address, timing, sessions, max_sessions, sweep_warning })
    }

    /// Takes the program's own configuration of the client, and sets in it what the store relies on.
    pub(super) fn of_opts(opts: Opts, timing: ServerOptions) -> Result<Self, Error> {
        timing.check()?;
        let Some(database) = opts.db_name().filter(|name| !name.is_empty()) else {
            return Err(invalid(
                "the `Opts` for a `MysqlStore` name no database: set `db_name` to the one where the \
                 locks are kept",
            ));
        };
        let address = match opts.socket() {
            Some(socket) => format!("mysql socket {socket}"),
            None => format!("mysql://{}:{}/…", opts.ip_or_hostname(), opts.tcp_port()),
        };
        // The client runs both lists from their ends, and `setup` after `init`. What the store relies
        // on has to be the last word.
        let ours = session_settings(&timing, database);
        let init = [&ours, opts.init()].concat();
        let setup =
            if opts.setup().is_empty() { Vec::new() } else { [&ours, opts.setup()].concat() };
        let builder = OptsBuilder::from_opts(opts).client_found_rows(false).init(init).setup(setup);
        let opts = with_settings(builder, &timing).into();
        let (credentials, tls) = (timing.credentials.clone(), Tls::default());
        let login = Login { opts, credentials, tls };
        let (sessions, max_sessions, sweep_warning) =
            (false, MAX_SESSIONS, SweepWarning::default());
        Ok(Self { login, address, timing, sessions, max_sessions, sweep_warning })
    }

    /// The same, with locks that belong to connections.
    pub(super) fn with_sessions(&self, max_sessions: usize) -> Result<Self, Error> {
        check_max_sessions(max_sessions)?;
        Ok(Self { sessions: true, max_sessions, ..self.clone() })
    }
}

fn is_session(value: &str) -> Result<bool, Error> {
    match value {
        "session" => Ok(true),
        "lease" => Ok(false),
        _ => Err(invalid(
            "`lock` in a `mysql://` URL is `lease`, which is the default, or `session`",
        )),
    }
}

fn idle(timing: &ServerOptions) -> Duration {
    (timing.heartbeat * 3 + timing.response_timeout).max(MIN_IDLE)
}

/// A `wait_timeout` that is not shorter than this. The server counts whole seconds.
pub(super) fn idle_seconds(idle: Duration) -> u64 {
    (idle.as_secs() + 1).min(MAX_IDLE)
}

/// The login, and the database.
fn login(url: &Url) -> Result<(OptsBuilder, String), Error> {
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        // Not quoted: the text may be the password.
        text.map(Cow::into_owned)
            .map_err(|_| invalid("user, password or database in the URL are not UTF-8"))
    };
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| invalid("a `mysql://` URL names a host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let database = decoded(url.path().trim_start_matches('/'))?;
    if database.is_empty() || database.contains('/') {
        return Err(invalid(
            "a `mysql://` URL names the database where the locks are kept: write it like \
             `mysql://user:password@127.0.0.1/database`",
        ));
    }
    let user = decoded(url.username())?;
    let password = url.password().map(decoded).transpose()?;
    let opts = OptsBuilder::default()
        .ip_or_hostname(decoded(host)?)
        .tcp_port(url.port().unwrap_or(3306))
        .user(Some(user).filter(|user| !user.is_empty()))
        .pass(password)
        .db_name(Some(database.clone()))
        // Connect as the URL says, even where a local server offers a socket.
        .prefer_socket(false);
    Ok((opts, database))
}

fn with_settings(opts: OptsBuilder, timing: &ServerOptions) -> OptsBuilder {
    // Detects a peer that is gone silently. The system counts whole seconds, up to the second of these.
    let (least, most) = (Duration::from_secs(1), Duration::from_secs(32_767));
    opts.tcp_keepalive(Some(timing.heartbeat.clamp(least, most)))
        // The client would ask the server for both, in an extra round trip.
        .max_allowed_packet(Some(LARGEST_PACKET))
        .wait_timeout(usize::try_from(idle_seconds(idle(timing))).ok())
}

/// What each connection sets, so that no setting of the user's server or client matters.
fn session_settings(timing: &ServerOptions, database: &str) -> Vec<String> {
    // A lock wait in the server lasts no longer than the wait for its answer. The server counts
    // whole seconds. A queued session waits in one long statement, so statements have no time
    // limit; MySQL and MariaDB name that limit differently.
    let limit = timing.response_timeout.as_secs().clamp(1, MAX_IDLE);
    // A process that is stopped keeps no connection for long. One that lives sends heartbeats.
    let idle = idle_seconds(idle(timing));
    vec![
        // An `init_connect` of the server, which only some users run, may have chosen another one.
        format!("USE `{}`", database.replace('`', "``")),
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE".into(),
        // What the handshake has set: keys are UTF-8.
        "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci".into(),
        format!(
            // First, that a commit neither begins a transaction nor ends the connection.
            "SET SESSION completion_type = 'NO_CHAIN', autocommit = 1, \
             sql_mode = 'STRICT_ALL_TABLES', wait_timeout = {idle}, \
             innodb_lock_wait_timeout = {limit}, lock_wait_timeout = {limit}, \
             sql_select_limit = 18446744073709551615, sql_big_selects = 1, \
             group_concat_max_len = 1048576 /*M!, max_statement_time = 0 */ \
             /*!50708 , max_execution_time = 0 */"
        ),
    ]
}

fn invalid(sentence: &str) -> Error {
    Error::InvalidOptions(sentence.into())
}
