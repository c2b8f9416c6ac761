//! Begins TLS on a connection. A refusal says which host the certificate is wrong for, and why.

use std::io;

use redis::{ErrorKind, RedisResult};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::engines::tls;

/// Begins TLS with a host, whose certificate must be for its name.
pub(in crate::engines::redis) async fn begin(
    connector: &TlsConnector,
    host: &str,
    stream: TcpStream,
) -> RedisResult<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let sentence = "TLS needs a host name or an IP address";
        redis::RedisError::from((ErrorKind::InvalidClientConfig, sentence, host.to_owned()))
    })?;
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
