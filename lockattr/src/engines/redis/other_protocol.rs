//! Why a server could not be reached: TLS on a port without it, or the other way round.
//!
//! Neither failure names its cause. A Redis without TLS waits for the end of a line that never comes,
//! and one with TLS closes the connection.

use std::io::ErrorKind;
use std::time::Duration;

use redis::{ConnectionAddr, RedisError};
use tokio::time::timeout;

use crate::engines::dial::dial;

/// How long the server has for its answer, the connection included. A server in reach needs a part of
/// it, and the caller waits for the error meanwhile.
const LIMIT: Duration = Duration::from_millis(300);

/// The end of a handshake that never began. A TLS server refuses it by an alert; it has read all of it
/// then, so the connection ends without a reset that would discard the alert.
const HANDSHAKE: &[u8] = b"\x16\x03\x01\x00\x04\x0e\x00\x00\x00";

/// The first bytes of every alert.
const ALERT: &[u8] = b"\x15\x03";

/// Returns whether another protocol can be the cause of a failed connection attempt.
pub(super) fn is_possible(error: Option<&RedisError>) -> bool {
    // Without an error of the client, our own time limit has passed.
    error.is_none_or(|error| error.is_io_error() && !error.is_connection_refusal())
}

/// Asks the server in the other protocol, and returns what to write if it answers.
pub(super) async fn advice(addr: &ConnectionAddr) -> Option<String> {
    match addr {
        ConnectionAddr::TcpTls { host, port, .. } => {
            // Any answer begins so, also `NOAUTH`.
            let answer = answer(host, *port, b"PING\r\n").await?;
            matches!(answer.first(), Some(b'+' | b'-')).then(|| {
                format!(
                    "the server at {host}:{port} does not speak TLS on this port: write `redis://` (with \
                     several hosts, leave `tls=true` out), or the port on which it does"
                )
            })
        }
        ConnectionAddr::Tcp(host, port) => {
            let answer = answer(host, *port, HANDSHAKE).await?;
            answer.starts_with(ALERT).then(|| {
                format!(
                    "the server at {host}:{port} speaks only TLS on this port: write `rediss://` (with \
                     several hosts, `tls=true`), or the port without TLS"
                )
            })
        }
        _ => None,
    }
}

/// Returns the first bytes of the answer to `question`, over a connection of its own.
async fn answer(host: &str, port: u16, question: &[u8]) -> Option<Vec<u8>> {
    let asking = async {
        let stream = dial(host, port, LIMIT).await.ok()?;
        stream.writable().await.ok()?;
        // A new connection has room for it.
        stream.try_write(question).ok()?;
        let mut bytes = [0; 16];
        loop {
            stream.readable().await.ok()?;
            match stream.try_read(&mut bytes) {
                Ok(count) => return Some(bytes[..count].to_vec()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    };
    timeout(LIMIT, asking).await.ok()?
}
