//! How one server is reached: its address, its TLS, and the login of each new connection.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::AsyncDNSResolver;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, ProtocolVersion,
    RedisConnectionInfo, RedisError, RedisFuture, RedisResult,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::tls::Tls;
use super::unproven::unproven;
use crate::engines::dial::{KeepAlive, dial, handshake_limit, lookup, no_answer};
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

/// A connection that is open, encrypted or not.
type Stream = Pin<Box<dyn Duplex>>;

trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// The task that reads and writes a connection. It ends with this.
struct Driver(AbortHandle);

impl Driver {
    fn spawn(driver: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(driver).abort_handle())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Looks names up for a client that connects itself.
struct OwnThreads;

impl AsyncDNSResolver for OwnThreads {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        host: &'b str,
        port: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        Box::pin(async move {
            let found = lookup(host, port).await?;
            Ok(Box::new(found.into_iter()) as Box<dyn Iterator<Item = SocketAddr> + Send>)
        })
    }
}

/// The outcome of a step in which the server has to answer.
pub(super) async fn in_time<T>(
    limit: Duration,
    step: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    timeout(limit, step).await.unwrap_or_else(|_| Err(no_answer(limit).into()))
}

/// An open connection.
pub(super) struct Connected {
    pub(super) connection: MultiplexedConnection,
    /// Its drop ends the connection's task, if that is not the client's.
    driver: Option<Driver>,
}

impl Connected {
    /// Ends the connection. A caller that waits for a reply gets an error.
    pub(super) fn end(&self) {
        if let Some(Driver(task)) = &self.driver {
            task.abort();
        }
    }
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

    /// Connects, with the client's own login unless there are `credentials`. `limit` is for one attempt at one
    /// address.
    pub(super) async fn connect(
        &self,
        protocol: ProtocolVersion,
        credentials: Option<&Credentials>,
        config: &AsyncConnectionConfig,
        limit: Duration,
    ) -> RedisResult<Connected> {
        let login = self.login(protocol, credentials);
        let connected = async {
            let Some(stream) = self.dial(limit).await? else {
                // A Unix socket, or the TLS of a client of the program's.
                let client = Client::open(self.info.clone().set_redis_settings(login.clone()))?;
                let config = config.clone().set_connection_timeout(Some(handshake_limit(limit)));
                let config = config.set_dns_resolver(OwnThreads);
                let connection =
                    client.get_multiplexed_async_connection_with_config(&config).await?;
                return Ok(Connected { connection, driver: None });
            };
            let (stream, is_in) = unproven(stream);
            let connecting = MultiplexedConnection::new_with_config(&login, stream, config.clone());
            let (connection, driver) = in_time(handshake_limit(limit), connecting).await?;
            is_in.store(true, Ordering::Relaxed);
            Ok(Connected { connection, driver: Some(Driver::spawn(driver)) })
        };
        connected.await.map_err(|error| refused(error, &login))
    }

    /// Connects for messages only, without RESP3.
    pub(super) async fn listen(
        &self,
        credentials: Option<&Credentials>,
        limit: Duration,
    ) -> RedisResult<PubSub> {
        let login = self.login(ProtocolVersion::RESP2, credentials);
        let connected = async {
            match self.dial(limit).await? {
                Some(stream) => {
                    let (stream, is_in) = unproven(stream);
                    let connecting = PubSub::new(&login, stream);
                    let listens = in_time(handshake_limit(limit), connecting).await?;
                    is_in.store(true, Ordering::Relaxed);
                    Ok(listens)
                }
                None => {
                    let client = Client::open(self.info.clone().set_redis_settings(login.clone()))?;
                    in_time(handshake_limit(limit), client.get_async_pubsub()).await
                }
            }
        };
        connected.await.map_err(|error| refused(error, &login))
    }

    /// Opens the connection, encrypted if the URL asks for it. `None` if only the client can do that.
    async fn dial(&self, limit: Duration) -> RedisResult<Option<Stream>> {
        let (host, port) = match self.info.addr() {
            ConnectionAddr::Tcp(host, port) => (host, *port),
            ConnectionAddr::TcpTls { host, port, .. } if self.tls.is_ours() => (host, *port),
            _ => return Ok(None),
        };
        let stream = dial(host, port, limit).await?;
        self.keep_alive().set(&stream)?;
        #[cfg(feature = "tls")]
        if let Some(connector) = self.tls.connector() {
            let beginning = super::tls::begin(connector, host, stream);
            return Ok(Some(Box::pin(in_time(handshake_limit(limit), beginning).await?)));
        }
        if plaintext::is_remote(host) {
            let advice = "write `rediss://`, or `tls=true` in a URL with several hosts";
            plaintext::warn_once(&self.address, advice);
        }
        Ok(Some(Box::pin(stream)))
    }

    fn keep_alive(&self) -> KeepAlive {
        let settings = self.info.tcp_settings();
        KeepAlive {
            probes: settings.keepalive().cloned(),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            user_timeout: settings.user_timeout(),
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            user_timeout: None,
        }
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
