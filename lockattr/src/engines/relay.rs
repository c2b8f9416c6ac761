//! The steady state of a relay, for a client that takes neither a `rustls::ClientConfig` nor a stream of
//! the program's: it connects to a task of this process, which relays to the server.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::time::timeout;

/// How long the end of TLS may take to be written.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Copies both ways. When one side closes, so does the other, as if there were no relay.
pub(super) async fn relay(
    client: impl AsyncRead + AsyncWrite,
    server: impl AsyncRead + AsyncWrite,
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
