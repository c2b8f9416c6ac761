//! The server's side of a relay, for a client that takes neither a `rustls::ClientConfig` nor a
//! stream of the program's: it connects to a task of this process, which relays to the server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Verification, explained, server_name};
use crate::store::StoreError;

/// How long the end of TLS may take to be written.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

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

/// Copies both ways. When one side closes, so does the other, as if there were no relay.
pub(in crate::engines) async fn relay(
    client: impl AsyncRead + AsyncWrite,
    server: TlsStream<TcpStream>,
) {
    let (mut from_server, mut to_server) = split(server);
    let (mut from_client, mut to_client) = split(client);
    tokio::select! {
        _ = copy(&mut from_server, &mut to_client) => {}
        _ = copy(&mut from_client, &mut to_server) => {}
    }
    // A server that reads no more keeps no task of this process.
    let _closed = timeout(CLOSE_LIMIT, to_server.shutdown()).await;
}
