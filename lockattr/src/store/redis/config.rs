//! What a Redis URL says: where the server is, and how long to wait for it.

use std::time::Duration;

use redis::{Client, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo};
use url::Url;

use crate::Error;
use crate::settings::ServerSettings;
use crate::store_url::{redacted, unknown_setting};

/// The settings of one Redis store.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) client: Client,
    /// The same for servers that do not know RESP3.
    pub(super) plain: Client,
    /// The server without its password, for errors.
    pub(super) address: String,
    /// How many connections the keys are spread over.
    pub(super) connections: usize,
    pub(super) timing: ServerSettings,
    /// The longest lease that the server may forget by a restart, if others take its place then.
    pub(super) forgets: Option<Duration>,
}

impl Config {
    pub(super) fn read(
        mut url: Url,
        query: &[(String, String)],
        mut timing: ServerSettings,
    ) -> Result<Self, Error> {
        let unix = url.scheme() == "redis+unix";
        for (name, value) in query {
            match name.as_str() {
                // A socket's path leaves no other place for these.
                "user" | "pass" | "db" if unix => {
                    url.query_pairs_mut().append_pair(name, value);
                }
                _ if timing.set(name, value)? => {}
                _ => return Err(unknown_setting(query, name, REDIS_NAMES)),
            }
        }
        timing.check()?;
        let connections = timing.connections;
        let address = redacted(url.as_str());
        let makes_no_sense = |error| {
            Error::InvalidOptions(format!("the Redis URL for {address} makes no sense: {error}"))
        };
        let plain = client(url.clone(), ProtocolVersion::RESP2).map_err(makes_no_sense)?;
        let client = client(url, ProtocolVersion::RESP3).map_err(makes_no_sense)?;
        Ok(Self { client, plain, address, connections, timing, forgets: None })
    }
}

const REDIS_NAMES: &str = ", and for Redis `connections`, `connect_timeout`, `response_timeout`, \
                           `heartbeat`, and with `redis+unix://` also `user`, `pass`, `db`";

fn client(url: Url, protocol: ProtocolVersion) -> redis::RedisResult<Client> {
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
        // With RESP3 the server can push to the connection that asks. The name is what
        // `CLIENT LIST` shows.
        .set_redis_settings(
            settings.set_protocol(protocol).set_lib_name("lockattr", env!("CARGO_PKG_VERSION")),
        )
        // Off by default in this client: small requests would wait for the peer's delayed ACK.
        .set_tcp_settings(tcp.set_nodelay(true));
    Client::open(info)
}
