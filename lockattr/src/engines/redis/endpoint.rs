//! How one server is reached: its address, its TLS, and the login of each new connection.

use std::sync::Arc;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, ProtocolVersion,
    RedisConnectionInfo, RedisError, RedisResult,
};

use super::tls::Tls;
use crate::engines::plaintext;
use crate::store::Credentials;

/// How one server is reached.
#[derive(Clone)]
pub(super) struct Endpoint {
    info: ConnectionInfo,
    tls: Tls,
    /// The server's address without its password, for errors.
    pub(super) address: Arc<str>,
}

/// An open connection.
pub(super) struct Connected {
    pub(super) connection: MultiplexedConnection,
    /// Its drop ends the connection's task, if that is not the client's.
    #[cfg(feature = "tls")]
    _driver: Option<super::tls::Driver>,
}

impl Endpoint {
    /// `tls` is that of the URL; a client's own is part of `info`.
    pub(super) fn new(info: ConnectionInfo, tls: Tls, address: &str) -> Self {
        let mut settings = info.redis_settings().clone();
        // `CLIENT LIST` shows the library's name, unless the program has chosen another.
        if settings.lib_name().is_none() && !settings.skip_set_lib_name() {
            settings = settings.set_lib_name("lockattr", env!("CARGO_PKG_VERSION"));
        }
        // Off by default in this client: small requests would wait for the peer's delayed ACK.
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
        Self { info, tls, address: address.into() }
    }

    /// As a client of the program reaches it.
    pub(super) fn of_client(info: ConnectionInfo) -> Self {
        let address = info.addr().to_string();
        Self::new(info, Tls::none(), &address)
    }

    /// Returns another server that is reached in the same way.
    pub(super) fn at(&self, host: &str, port: u16, address: &str) -> Self {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let addr = match self.info.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        let info = self.info.clone().set_addr(addr);
        Self { info, tls: self.tls.clone(), address: address.into() }
    }

    pub(super) fn addr(&self) -> &ConnectionAddr {
        self.info.addr()
    }

    /// Connects, with the client's own login unless there are `credentials`.
    pub(super) async fn connect(
        &self,
        protocol: ProtocolVersion,
        credentials: Option<&Credentials>,
        config: &AsyncConnectionConfig,
    ) -> RedisResult<Connected> {
        let login = self.login(protocol, credentials);
        let connected = async {
            #[cfg(feature = "tls")]
            if let Some(stream) = self.tls.connect(self.info.addr()).await? {
                let (connection, driver) =
                    MultiplexedConnection::new_with_config(&login, stream, config.clone()).await?;
                let driver = super::tls::Driver::spawn(driver);
                return Ok(Connected { connection, _driver: Some(driver) });
            }
            if let ConnectionAddr::Tcp(host, _) = self.info.addr()
                && plaintext::is_remote(host)
            {
                let advice = "write `rediss://`, or `tls=true` in a URL with several hosts";
                plaintext::warn_once(&self.address, advice);
            }
            let client = Client::open(self.info.clone().set_redis_settings(login.clone()))?;
            Ok(Connected {
                connection: client.get_multiplexed_async_connection_with_config(config).await?,
                #[cfg(feature = "tls")]
                _driver: None,
            })
        };
        connected.await.map_err(|error| refused(error, &login))
    }

    /// Connects for messages only, without RESP3.
    pub(super) async fn listen(&self, credentials: Option<&Credentials>) -> RedisResult<PubSub> {
        let login = self.login(ProtocolVersion::RESP2, credentials);
        let connected = async {
            #[cfg(feature = "tls")]
            if let Some(stream) = self.tls.connect(self.info.addr()).await? {
                return PubSub::new(&login, stream).await;
            }
            let client = Client::open(self.info.clone().set_redis_settings(login.clone()))?;
            client.get_async_pubsub().await
        };
        connected.await.map_err(|error| refused(error, &login))
    }

    fn login(
        &self,
        protocol: ProtocolVersion,
        credentials: Option<&Credentials>,
    ) -> RedisConnectionInfo {
        let mut login = self.info.redis_settings().clone().set_protocol(protocol);
        if let Some(credentials) = credentials {
            login = login.set_password(credentials.password());
            if let Some(user) = credentials.user() {
                login = login.set_username(user);
            }
        }
        login
    }
}

/// Returns the error of a login, without its text if that quotes the password: a server that does
/// not know a command repeats its arguments.
fn refused(error: RedisError, login: &RedisConnectionInfo) -> RedisError {
    let unknown = error.detail().is_some_and(|detail| detail.starts_with("unknown command"));
    if unknown && login.protocol() != ProtocolVersion::RESP2 {
        return (ErrorKind::RESP3NotSupported, "the server does not know `HELLO`").into();
    }
    let is_quoted =
        |password: &str| !password.is_empty() && format!("{error:?}").contains(password);
    match error.code().is_some() && login.password().is_some_and(is_quoted) {
        true => {
            let sentence = "the server refused the login, in words that repeat the password";
            (ErrorKind::AuthenticationFailed, sentence).into()
        }
        false => error,
    }
}
