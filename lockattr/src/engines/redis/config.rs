//! The settings in a Redis URL: where the server is, and the timeouts.

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisResult};
use url::Url;

use super::sentinels::Sentinels;
use super::tls::{self, Tls};
use crate::Error;
use crate::engines::redlock::Member;
use crate::lock::server_options::ServerOptions;
use crate::store::StoreError;
use crate::store::url::{shown, unknown_setting};

/// The settings of one Redis store.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) server: Server,
    /// The URL without its password, for errors.
    pub(super) address: String,
    pub(super) timing: ServerOptions,
    /// The longest lease that the server may lose by a restart, if other servers take its place
    /// then.
    pub(super) forgets: Option<Duration>,
    /// Which server of a quorum it is, if it is one.
    pub(super) member: Option<Member>,
}

/// Where the server is.
#[derive(Clone)]
pub(super) enum Server {
    /// At the address in the URL.
    Fixed(Arc<Clients>),
    /// At the address that the sentinels report.
    Found(Arc<Sentinels>),
}

/// The clients for one server.
pub(super) struct Clients {
    pub(super) client: Client,
    /// For servers without RESP3.
    pub(super) plain: Client,
    /// The server's address without its password, for errors.
    pub(super) address: Arc<str>,
}

impl Config {
    pub(super) fn read(
        urls: Vec<Url>,
        query: &[(String, String)],
        mut timing: ServerOptions,
    ) -> Result<Self, Error> {
        let names: &[_] = match urls[0].scheme() {
            // The path of a socket leaves no other place for these.
            "redis+unix" => &["user", "pass", "db"],
            "redis+sentinel" => &["db", "sentinel_user", "sentinel_pass", "tls"],
            _ => &[],
        };
        let mut own = Vec::new();
        for (name, value) in query {
            if names.contains(&name.as_str()) {
                own.push((name.as_str(), value.as_str()));
            } else if !timing.set(name, value)? {
                return Err(unknown_setting(query, name, REDIS_NAMES));
            }
        }
        timing.check()?;
        let address = shown(&urls);
        let tls_option = own.iter().find(|(name, _)| *name == "tls").map(|(_, value)| *value);
        let tls = Tls::read(&timing.tls, tls::uses_tls(urls[0].scheme(), tls_option)?)?;
        let server = if urls[0].scheme() == "redis+sentinel" {
            Server::Found(Sentinels::read(&urls, &own, &address, &timing, tls)?)
        } else {
            Server::Fixed(one(urls, &own, &address, &tls)?.into())
        };
        Ok(Self { server, address, timing, forgets: None, member: None })
    }
}

impl Server {
    /// Returns how to reach the server now.
    pub(super) async fn find(&self) -> Result<Arc<Clients>, StoreError> {
        match self {
            Self::Fixed(clients) => Ok(clients.clone()),
            Self::Found(sentinels) => sentinels.master().await.map(Arc::new),
        }
    }

    /// Returns the sentinels, if they report the address.
    pub(super) fn sentinels(&self) -> Option<&Arc<Sentinels>> {
        match self {
            Self::Fixed(_) => None,
            Self::Found(sentinels) => Some(sentinels),
        }
    }
}

impl Clients {
    pub(super) fn new(url: Url, address: &str, tls: &Tls) -> RedisResult<Self> {
        let plain = client(url.clone(), ProtocolVersion::RESP2, tls)?;
        let client = client(url, ProtocolVersion::RESP3, tls)?;
        Ok(Self { client, plain, address: address.into() })
    }
}

/// Returns the clients for a URL with one host.
fn one(urls: Vec<Url>, own: &[(&str, &str)], address: &str, tls: &Tls) -> Result<Clients, Error> {
    let Ok([mut url]) = <[Url; 1]>::try_from(urls) else {
        return Err(Error::InvalidOptions("this URL takes one host".into()));
    };
    for (name, value) in own {
        url.query_pairs_mut().append_pair(name, value);
    }
    Clients::new(url, address, tls).map_err(|error| invalid_url(address, &error))
}

pub(super) fn invalid_url(address: &str, error: &redis::RedisError) -> Error {
    Error::InvalidOptions(format!("the Redis URL for {address} is invalid: {error}"))
}

const REDIS_NAMES: &str = ", and for Redis `connections`, `connect_timeout`, `response_timeout`, \
                           `heartbeat`, `replicas`, with TLS also `ca`, `client_cert`, `client_key`, with \
                           `redis+unix://` also `user`, `pass`, `db`, and with \
                           `redis+sentinel://` also `db`, `sentinel_user`, `sentinel_pass`, `tls`";

pub(super) fn client(url: Url, protocol: ProtocolVersion, tls: &Tls) -> RedisResult<Client> {
    let info = url.into_connection_info()?;
    let settings: RedisConnectionInfo = info.redis_settings().clone();
    let tcp = info.tcp_settings().clone();
    let info = info
        // With RESP3 the server can push messages to the connection that sends commands.
        // `CLIENT LIST` shows the library's name.
        .set_redis_settings(
            settings.set_protocol(protocol).set_lib_name("lockattr", env!("CARGO_PKG_VERSION")),
        )
        // Off by default in this client: small requests would wait for the peer's delayed ACK.
        .set_tcp_settings(tcp.set_nodelay(true));
    tls.client(info)
}
