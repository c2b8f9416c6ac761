//! Opens a connection with TLS. A refusal says which host the certificate is wrong for, and why.

use std::io;

use futures_util::future::select_ok;
use redis::{ErrorKind, RedisResult};
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::engines::tls;

/// An encrypted connection.
pub(in crate::engines::redis) type Stream = TlsStream<TcpStream>;

/// The task that reads and writes a connection. It ends with this.
pub(in crate::engines::redis) struct Driver(AbortHandle);

impl Driver {
    pub(in crate::engines::redis) fn spawn(
        driver: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self(tokio::spawn(driver).abort_handle())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connects to a host, whose certificate must be for its name.
pub(super) async fn connect(
    connector: &TlsConnector,
    host: &str,
    port: u16,
) -> RedisResult<Stream> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let sentence = "TLS needs a host name or an IP address";
        redis::RedisError::from((ErrorKind::InvalidClientConfig, sentence, host.to_owned()))
    })?;
    let attempts: Vec<_> =
        lookup_host((host, port)).await?.map(|addr| Box::pin(TcpStream::connect(addr))).collect();
    if attempts.is_empty() {
        let sentence = format!("the name `{host}` has no address");
        return Err(io::Error::new(io::ErrorKind::NotFound, sentence).into());
    }
    let (stream, _others) = select_ok(attempts).await?;
    // Small requests would wait for the peer's delayed ACK.
    stream.set_nodelay(true)?;
    Ok(connector.connect(name, stream).await.map_err(|error| explained(error, host))?)
}

/// Says in a sentence why a handshake failed.
fn explained(error: io::Error, host: &str) -> io::Error {
    let sentence = tls::explained(host, &error)
        .unwrap_or_else(|| format!("the TLS handshake with {host} was cut off: {error}"));
    io::Error::new(error.kind(), Refused { sentence, source: error })
}

/// A handshake that failed, in a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
struct Refused {
    sentence: String,
    source: io::Error,
}
