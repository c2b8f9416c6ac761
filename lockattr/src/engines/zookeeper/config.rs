//! What a ZooKeeper URL says: where the servers are, below which node, and for how long a session
//! lives.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::Error;
use crate::lock::settings::{ServerSettings, duration};
use crate::store::url::{shown, unknown_setting};

/// ZooKeeper's own.
const DEFAULT_PORT: u16 = 2181;

/// Half of it is the longest lease, which the default TTL of 10 s meets.
const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(20);

/// Where locks are if the URL has no path.
const DEFAULT_CHROOT: &str = "/lockattr";

/// The settings of one store.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) hosts: Vec<String>,
    /// Begins with `/` and does not end so.
    pub(super) chroot: String,
    /// `user:password`.
    pub(super) login: Option<String>,
    /// The URL without its password, for errors.
    pub(super) address: String,
    pub(super) session_timeout: Duration,
    pub(super) connect_timeout: Duration,
    pub(super) response_timeout: Duration,
}

impl Config {
    pub(super) fn read(
        urls: &[Url],
        query: &[(String, String)],
        defaults: &ServerSettings,
    ) -> Result<Self, Error> {
        let address = shown(urls);
        let mut config = Self {
            hosts: urls.iter().map(host).collect::<Result<_, _>>()?,
            chroot: chroot(&urls[0])?,
            login: login(&urls[0])?,
            address,
            session_timeout: DEFAULT_SESSION_TIMEOUT,
            connect_timeout: defaults.connect_timeout,
            response_timeout: defaults.response_timeout,
        };
        for (name, value) in query {
            match name.as_str() {
                "session_timeout" => config.session_timeout = duration(name, value)?,
                "connect_timeout" => config.connect_timeout = duration(name, value)?,
                "response_timeout" => config.response_timeout = duration(name, value)?,
                "tls" | "ca" | "client_cert" | "client_key" | "cert" | "key" => {
                    return Err(no_tls());
                }
                _ => return Err(unknown_setting(query, name, ZOOKEEPER_NAMES)),
            }
        }
        defaults.check()?;
        let times = [
            ("connect_timeout", config.connect_timeout),
            ("response_timeout", config.response_timeout),
        ];
        if let Some((name, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return Err(Error::InvalidOptions(format!("`{name}` must not be zero")));
        }
        let whole = config.session_timeout.subsec_nanos().is_multiple_of(1_000_000);
        let range = Duration::from_millis(100)..=Duration::from_secs(24 * 60 * 60);
        if !whole || !range.contains(&config.session_timeout) {
            return Err(Error::InvalidOptions(
                "`session_timeout` must be 100 ms to one day, in whole milliseconds".into(),
            ));
        }
        Ok(config)
    }

    /// A connection on which nothing was heard for so long is left for one to another server: in
    /// time for that, and so that the servers hear of us several times per session.
    pub(super) fn silence_limit(&self) -> Duration {
        (self.response_timeout * 2).min(self.session_timeout / 5)
    }

    /// For how long a session certainly lives after a question that a majority answered.
    ///
    /// A server that clients are connected to answers pings and reads by itself, cut off from the
    /// leader as it may be, while the leader counts down the session: so these prove nothing. A
    /// write does: the leader looks whether the session lives before it proposes it, and only a
    /// majority commits it. But it does not make the session longer. The leader knows of a client
    /// what the client's server tells with each of its pings to the leader, one per half tick; and
    /// the client is heard at least every three eighths of [`silence`](Self::silence) (the client's
    /// own ping), which is less than 3/40 of a session. So when the write was committed, the leader
    /// had heard of the client less than 3/40 + half a tick ago. A session has two ticks or more, so
    /// half a tick is a quarter of it at most. What remains is 27/40 of a session, and half of it is
    /// what we rely on: 7/40 are left for what pings take on their way. After a failover, the new
    /// leader begins to count from zero.
    ///
    /// A process that stood still for longer than those 7/40 of a session, and whose server loses
    /// the leader within half a tick of the first write after that, falls out of this.
    pub(super) fn keeps_for(&self) -> Duration {
        self.session_timeout / 2
    }
}

const ZOOKEEPER_NAMES: &str =
    ", and for ZooKeeper `session_timeout`, `connect_timeout`, `response_timeout`";

fn host(url: &Url) -> Result<String, Error> {
    match url.host_str() {
        Some(host) if !host.is_empty() => {
            let host = percent_decode_str(host).decode_utf8_lossy().into_owned();
            Ok(format!("{host}:{}", url.port().unwrap_or(DEFAULT_PORT)))
        }
        _ => {
            let sentence = "a ZooKeeper URL names the servers: write it like \
                            `zookeeper://host1,host2,host3/chroot`";
            Err(Error::InvalidOptions(sentence.into()))
        }
    }
}

fn chroot(url: &Url) -> Result<String, Error> {
    let path = percent_decode_str(url.path()).decode_utf8_lossy();
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Ok(DEFAULT_CHROOT.into());
    }
    let plain = |name: &str| {
        !name.is_empty()
            && !matches!(name, "." | "..")
            && name.chars().all(|char| char.is_alphanumeric() || "-_.:~@+=".contains(char))
    };
    if !path[1..].split('/').all(plain) || path.starts_with("/zookeeper") {
        return Err(Error::InvalidOptions(
            "the path of a ZooKeeper URL is the node below which locks are kept: write names of \
             letters, digits and `-_.:~@+=` between its slashes, and not `zookeeper` first"
                .into(),
        ));
    }
    Ok(path.into())
}

fn login(url: &Url) -> Result<Option<String>, Error> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    match url.password() {
        Some(password) if !url.username().is_empty() => {
            Ok(Some([decoded(url.username()), decoded(password)].join(":")))
        }
        _ => {
            let sentence = "a ZooKeeper URL takes both user and password, or neither";
            Err(Error::InvalidOptions(sentence.into()))
        }
    }
}

fn no_tls() -> Error {
    Error::InvalidOptions(
        "`zookeeper://` does not speak TLS: leave `tls`, `ca`, `cert` and `key` out, and put a \
         tunnel between"
            .into(),
    )
}
