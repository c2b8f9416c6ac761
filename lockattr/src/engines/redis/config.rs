//! The settings in a Redis URL: where the server is, and the timeouts.

use std::sync::Arc;
use std::time::Duration;

use redis::IntoConnectionInfo;
use url::Url;

use super::endpoint::Endpoint;
use super::sentinels::Sentinels;
use super::tls::{self, Tls};
use crate::Error;
use crate::engines::redlock::Member;
use crate::lock::server_options::ServerOptions;
use crate::store::url::{shown, unknown_setting};
use crate::store::{Credentials, StoreError};

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
    /// At the address in the URL, or in the client.
    Fixed(Arc<Endpoint>),
    /// At the address that the sentinels report.
    Found(Arc<Sentinels>),
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
            Server::Found(Sentinels::read(&urls, &own, &address, &timing, &tls)?)
        } else {
            Server::Fixed(one(urls, &own, &address, tls)?.into())
        };
        Ok(Self { server, address, timing, forgets: None, member: None })
    }

    /// Returns the settings of a store whose server the program has named without a URL.
    pub(super) fn new(server: Server, address: &str, timing: ServerOptions) -> Result<Self, Error> {
        timing.check()?;
        Ok(Self { server, address: address.into(), timing, forgets: None, member: None })
    }

    /// Returns the settings for the server at `endpoint`.
    pub(super) fn at(endpoint: Endpoint, timing: ServerOptions) -> Result<Self, Error> {
        let address = endpoint.address.clone();
        Self::new(Server::Fixed(endpoint.into()), &address, timing)
    }

    /// Returns what a provider says the credentials are now; `None` if there is no provider.
    pub(super) async fn credentials(&self) -> Result<Option<Credentials>, StoreError> {
        match &self.timing.credentials {
            Some(provider) => {
                provider.current(&self.address, self.timing.connect_timeout).await.map(Some)
            }
            None => Ok(None),
        }
    }
}

impl Server {
    /// Returns how to reach the server now.
    pub(super) async fn find(&self) -> Result<Arc<Endpoint>, StoreError> {
        match self {
            Self::Fixed(endpoint) => Ok(endpoint.clone()),
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

/// Returns how to reach the server of a URL with one host.
fn one(urls: Vec<Url>, own: &[(&str, &str)], address: &str, tls: Tls) -> Result<Endpoint, Error> {
    let Ok([mut url]) = <[Url; 1]>::try_from(urls) else {
        return Err(Error::InvalidOptions("this URL takes one host".into()));
    };
    for (name, value) in own {
        url.query_pairs_mut().append_pair(name, value);
    }
    endpoint(url, address, tls)
}

/// Returns how to reach the server of a URL that the Redis client can read.
pub(super) fn endpoint(url: Url, address: &str, tls: Tls) -> Result<Endpoint, Error> {
    let info = url.into_connection_info().map_err(|error| invalid_url(address, &error))?;
    Ok(Endpoint::new(info, tls, address))
}

fn invalid_url(address: &str, error: &redis::RedisError) -> Error {
    Error::InvalidOptions(format!("the Redis URL for {address} is invalid: {error}"))
}

const REDIS_NAMES: &str = ", and for Redis `connections`, `connect_timeout`, `response_timeout`, \
                           `heartbeat`, `replicas`, with TLS also `ca`, `client_cert`, `client_key`, with \
                           `redis+unix://` also `user`, `pass`, `db`, and with \
                           `redis+sentinel://` also `db`, `sentinel_user`, `sentinel_pass`, `tls`";
