//! What a Redis URL says: where the server is, and how long to wait for it.

use std::time::Duration;

use redis::{Client, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo};
use url::Url;

use crate::Error;
use crate::settings::{duration, number};
use crate::store_url::{redacted, unknown_setting};

/// The settings of one Redis store.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) client: Client,
    /// The server without its password, for errors.
    pub(super) address: String,
    /// How many connections the keys are spread over.
    pub(super) connections: usize,
    pub(super) timing: Timing,
}

/// How long to wait for the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) connect_timeout: Duration,
    pub(super) response_timeout: Duration,
    /// After this long without a reply, the server is asked whether it is still there.
    pub(super) heartbeat: Duration,
}

impl Config {
    pub(super) fn read(mut url: Url, settings: &[(String, String)]) -> Result<Self, Error> {
        let mut connections = 2;
        let mut timing = Timing {
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            heartbeat: Duration::from_secs(5),
        };
        let unix = url.scheme() == "redis+unix";
        for (name, value) in settings {
            match name.as_str() {
                "connections" => connections = number(name, value)?,
                "connect_timeout" => timing.connect_timeout = positive(name, value)?,
                "response_timeout" => timing.response_timeout = positive(name, value)?,
                "heartbeat" => timing.heartbeat = positive(name, value)?,
                // A socket's path leaves no other place for these.
                "user" | "pass" | "db" if unix => {
                    url.query_pairs_mut().append_pair(name, value);
                }
                _ => return Err(unknown_setting(name, REDIS_NAMES)),
            }
        }
        if !(1..=64).contains(&connections) {
            return Err(Error::InvalidOptions("`connections` in the URL must be 1 to 64".into()));
        }
        let address = redacted(url.as_str());
        let client = client(url).map_err(|error| {
            Error::InvalidOptions(format!("the Redis URL for {address} makes no sense: {error}"))
        })?;
        Ok(Self { client, address, connections, timing })
    }
}

const REDIS_NAMES: &str = ", and for Redis `connections`, `connect_timeout`, `response_timeout`, \
                           `heartbeat`, and with `redis+unix://` also `user`, `pass`, `db`";

fn client(url: Url) -> redis::RedisResult<Client> {
    #[cfg(feature = "tls")]
    if url.scheme() == "rediss" && rustls::crypto::CryptoProvider::get_default().is_none() {
        // With two providers in one program rustls panics unless one was chosen. Losing the race
        // to another chooser is as good.
        let _chosen_by_another = rustls::crypto::ring::default_provider().install_default();
    }
    let info = url.into_connection_info()?;
    let settings: RedisConnectionInfo = info.redis_settings().clone();
    let tcp = info.tcp_settings().clone();
    let info = info
        // RESP3, because a server can then push to the connection that asks. The name is what
        // `CLIENT LIST` shows.
        .set_redis_settings(
            settings
                .set_protocol(ProtocolVersion::RESP3)
                .set_lib_name("lockattr", env!("CARGO_PKG_VERSION")),
        )
        // Off by default in this client: small requests would wait for the peer's delayed ACK.
        .set_tcp_settings(tcp.set_nodelay(true));
    Client::open(info)
}

fn positive(name: &str, value: &str) -> Result<Duration, Error> {
    let duration = duration(name, value)?;
    if duration.is_zero() {
        return Err(Error::InvalidOptions(format!("`{name}` in the URL must not be zero")));
    }
    Ok(duration)
}
