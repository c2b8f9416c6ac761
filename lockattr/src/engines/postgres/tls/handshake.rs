//! rustls for the PostgreSQL client.
//!
//! The crate `tokio-postgres-rustls` does the same. It depends on the client, and Cargo cannot ask
//! for a crate only if two features are there: the feature `tls` would bring PostgreSQL to a program
//! that locks in Redis.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

use super::channel_binding::end_point;
use crate::engines::tls::{Verification, explained, server_name};

/// Makes the handshakes of a store.
#[derive(Clone)]
pub(super) struct Handshakes {
    config: Arc<ClientConfig>,
    verification: Verification,
}

impl Handshakes {
    pub(super) fn new(config: ClientConfig, verification: Verification) -> Self {
        Self { config: Arc::new(config), verification }
    }
}

impl MakeTlsConnect<Socket> for Handshakes {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake { host: host.to_owned(), by: self.clone() })
    }
}

/// One handshake.
pub(super) struct Handshake {
    host: String,
    by: Handshakes,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = HandshakeError;
    type Future = BoxFuture<'static, Result<Encrypted, HandshakeError>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let Self { host, by } = self;
        async move {
            let name = server_name(&host, by.verification).map_err(|error| HandshakeError {
                sentence: error.to_string(),
                source: io::Error::other(error),
            })?;
            let handshake = TlsConnector::from(by.config).connect(name, socket);
            handshake.await.map(Encrypted).map_err(|error| HandshakeError::new(&host, error))
        }
        .boxed()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
pub(super) struct HandshakeError {
    sentence: String,
    source: io::Error,
}

impl HandshakeError {
    fn new(host: &str, source: io::Error) -> Self {
        let sentence = explained(host, &source).unwrap_or_else(|| match source.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => format!(
                "{host} closed the connection in the handshake (`sslnegotiation=direct` needs \
                 PostgreSQL 17 or later)"
            ),
            _ => format!("{host}: {source}"),
        });
        Self { sentence, source }
    }
}

/// A connection with TLS.
pub(super) struct Encrypted(client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let (_socket, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let hash = certificate.and_then(|certificate| end_point(certificate));
        hash.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
