//! TLS on the server's side of a relay.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Verification, explained, server_name};
use crate::store::StoreError;

/// Begins TLS on a connection to `host`, whose certificate is verified as `config` does it.
pub(in crate::engines) async fn secure(
    stream: TcpStream,
    (host, verification): (&str, Verification),
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, StoreError> {
    let name = server_name(host, verification);
    let name = name.map_err(|error| StoreError::new(error.to_string()).with_source(error))?;
    let secured = TlsConnector::from(config).connect(name, stream).await;
    secured.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            let sentence = "ended the connection in place of TLS: check the port, and that the \
                            server has TLS there";
            StoreError::new(format!("{host} {sentence}")).with_source(error)
        }
        _ => refusal(host, error),
    })
}

/// Why a connection with TLS to `host` failed.
pub(in crate::engines) fn refusal(host: &str, error: io::Error) -> StoreError {
    let sentence = explained(host, &error);
    let sentence = sentence.unwrap_or_else(|| format!("TLS to {host} failed: {error}"));
    StoreError::new(sentence).with_source(error)
}
