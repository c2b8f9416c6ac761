//! The settings in a ZooKeeper URL: servers, chroot, credentials and timeouts.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;
use zookeeper_client::{Client, Connector};

use super::login::Login;
use super::tls::Tls;
use crate::Error;
use crate::engines::plaintext;
use crate::engines::tls::yes_or_no;
use crate::lock::server_options::ServerOptions;
use crate::lock::settings::duration;
use crate::store::url::{shown, unknown_setting};

/// ZooKeeper's default port.
pub(super) const DEFAULT_PORT: u16 = 2181;

/// The longest lease is half of it, which fits the default TTL of 10 s.
const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(20);

/// The parent node of the locks if the URL has no path.
const DEFAULT_CHROOT: &str = "/lockattr";

/// The settings of one store.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) hosts: Vec<String>,
    /// Begins with `/`, and does not end with it.
    pub(super) chroot: String,
    /// What each session begins with.
    pub(super) connector: Connector,
    pub(super) login: Login,
    pub(super) tls: Tls,
    /// Whether only clients with the same identity may use the nodes.
    pub(super) private: bool,
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
        defaults: &ServerOptions,
    ) -> Result<Self, Error> {
        let address = shown(urls);
        let login = Login::read(&urls[0], defaults.credentials.clone())?;
        let (mut files, mut tls) = (defaults.tls.clone(), false);
        let mut config = Self {
            hosts: urls.iter().map(host).collect::<Result<_, _>>()?,
            tls: Tls::default(),
            chroot: chroot(&percent_decode_str(urls[0].path()).decode_utf8_lossy())?,
            connector: Client::connector(),
            private: login.authenticates(),
            login,
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
                "tls" => tls = yes_or_no(value)?,
                "ca" => files.ca = Some(value.into()),
                "client_cert" | "cert" => files.cert = Some(value.into()),
                "client_key" | "key" => files.key = Some(value.into()),
                _ => return Err(unknown_setting(query, name, ZOOKEEPER_NAMES)),
            }
        }
        defaults.check()?;
        files.check()?;
        config.tls = Tls::read(&files, tls)?;
        if tls && urls.iter().any(|url| url.port().is_none()) {
            let sentence = "with `tls=true`, a ZooKeeper URL names the port of each server, its \
                            `secureClientPort`: write it like `zookeeper://host1:2281,host2:2281`";
            return Err(Error::InvalidOptions(sentence.into()));
        }
        let times = [
            ("connect_timeout", config.connect_timeout),
            ("response_timeout", config.response_timeout),
        ];
        if let Some((name, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return Err(Error::InvalidOptions(format!("`{name}` must not be zero")));
        }
        check_session_timeout(config.session_timeout)?;
        Ok(config)
    }

    /// Takes the program's own connector, and the servers in the client's notation.
    pub(super) fn of_connector(
        connector: Connector,
        cluster: &str,
        options: &ServerOptions,
    ) -> Result<Self, Error> {
        options.check()?;
        let (hosts, path) = split_cluster(cluster);
        if hosts.is_empty() || hosts.iter().any(String::is_empty) {
            return Err(Error::InvalidOptions(
                "a `ZookeeperStore` needs its servers: write them like `host1,host2:2181/chroot`"
                    .into(),
            ));
        }
        let login = Login { digest: None, credentials: options.credentials.clone() };
        Ok(Self {
            address: shown_hosts(&hosts),
            hosts,
            chroot: chroot(path)?,
            connector,
            private: login.authenticates(),
            login,
            tls: Tls::default(),
            session_timeout: DEFAULT_SESSION_TIMEOUT,
            connect_timeout: options.connect_timeout,
            response_timeout: options.response_timeout,
        })
    }

    pub(super) fn with_session_timeout(&self, session_timeout: Duration) -> Result<Self, Error> {
        check_session_timeout(session_timeout)?;
        Ok(Self { session_timeout, ..self.clone() })
    }

    pub(super) fn with_private_nodes(&self) -> Self {
        Self { private: true, ..self.clone() }
    }

    /// Says in the log that the connections to another machine are not encrypted.
    pub(super) fn warn_about_plaintext(&self) {
        let is_remote_plaintext = |host: &String| {
            let plain = host.strip_prefix("tcp://").unwrap_or(host);
            let name = plain.rsplit_once(':').map_or(plain, |(name, _port)| name);
            !host.starts_with("tcp+tls://") && plaintext::is_remote(name)
        };
        if !self.tls.is_enabled() && self.hosts.iter().any(is_remote_plaintext) {
            let advice = "add `tls=true` to the URL, with the servers' `secureClientPort`";
            plaintext::warn_once(&self.address, advice);
        }
    }

    /// How long a connection may be silent before the client leaves it for another server: short
    /// enough to connect in time, and to let the servers hear from the client several times per
    /// session.
    pub(super) fn silence_limit(&self) -> Duration {
        (self.response_timeout * 2).min(self.session_timeout / 5)
    }

    /// How long a session certainly lives after a request that a majority answered.
    ///
    /// A server answers pings and reads by itself, even while it is cut off from the leader and the
    /// leader counts down the session. So these prove nothing. A write does: the leader checks that
    /// the session lives before it proposes the write, and only a majority commits it. But a write
    /// does not extend the session. The leader learns about a client from the client's server,
    /// which reports it with each of its pings to the leader, one per half tick. That server hears
    /// from the client at least every three eighths of [`silence_limit`](Self::silence_limit) (the
    /// client's own ping), which is less than 3/40 of a session. So when the write was committed,
    /// the leader had heard from the client less than 3/40 of a session plus half a tick before. A
    /// session has two ticks or more, so half a tick is a quarter of it at most. That leaves 27/40
    /// of a session. The store relies on half a session, which leaves 7/40 for the time that pings
    /// take. After a failover, the new leader counts from zero.
    ///
    /// This does not cover a process that was paused for longer than those 7/40 of a session, and
    /// whose server loses the leader within half a tick of the first write after that.
    pub(super) fn max_ttl(&self) -> Duration {
        self.session_timeout / 2
    }
}

const ZOOKEEPER_NAMES: &str = ", and for ZooKeeper `session_timeout`, `connect_timeout`, `response_timeout`, `tls`, with \
     `tls=true` also `ca`, `client_cert`, `client_key`";

fn check_session_timeout(session_timeout: Duration) -> Result<(), Error> {
    let whole = session_timeout.subsec_nanos().is_multiple_of(1_000_000);
    let range = Duration::from_millis(100)..=Duration::from_secs(24 * 60 * 60);
    if !whole || !range.contains(&session_timeout) {
        return Err(Error::InvalidOptions(
            "`session_timeout` must be 100 ms to one day, in whole milliseconds".into(),
        ));
    }
    Ok(())
}

/// Splits `tcp+tls://host1,host2:2181/chroot` into its servers and its path.
fn split_cluster(cluster: &str) -> (Vec<String>, &str) {
    let last = cluster.rfind(',').map_or(0, |comma| comma + 1);
    let host = cluster[last..].find("://").map_or(last, |scheme| last + scheme + "://".len());
    let end = cluster[host..].find('/').map_or(cluster.len(), |slash| host + slash);
    (cluster[..end].split(',').map(str::to_owned).collect(), &cluster[end..])
}

/// The servers without the schemes that a cluster may name.
fn shown_hosts(hosts: &[String]) -> String {
    let plain = hosts.iter().map(|host| host.rsplit("://").next().unwrap_or_default());
    format!("zookeeper://{}/…", plain.collect::<Vec<_>>().join(","))
}

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

fn chroot(path: &str) -> Result<String, Error> {
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
