//! Whether a connection is encrypted: what a store's `sslmode` asks of the server before the login.
//!
//! The client's own negotiation does not say how it ended, and the login must know: a password does
//! not follow a server that merely says that it has no TLS.

use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Config, Socket};

use super::failure::NO_TLS;
use super::unproven::LoginCheck;
use crate::Error;
use crate::engines::plaintext;
use crate::engines::unproven::Unproven;

/// A length of eight bytes, and the code of a request for TLS.
const REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// How the connections of a store begin.
#[derive(Clone)]
pub(super) struct How {
    begin: Begin,
    /// The store's address, if the password must not follow a server that has no TLS.
    guarded: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Begin {
    /// In plaintext: as the URL or the program asks.
    Plain,
    /// TLS if the server has it.
    Prefer,
    Require,
    /// With TLS, unasked.
    Direct,
}

/// How to connect to `server`, and the settings that leave this to [`Negotiated`]. `elsewhere` is the
/// store's address, if the server is another machine. `None` if that is not needed: nothing leaves this
/// machine through a Unix socket.
pub(super) fn negotiation(
    server: &Config,
    has_tls: bool,
    elsewhere: Option<&str>,
) -> Option<(Config, How)> {
    let mode = server.get_ssl_mode();
    if has_sockets(server) && mode != SslMode::Require {
        return None;
    }
    let begin = match (mode, server.get_ssl_negotiation()) {
        (SslMode::Disable, _) => Begin::Plain,
        (SslMode::Prefer, _) if has_tls => Begin::Prefer,
        (SslMode::Prefer, _) => Begin::Plain,
        (_, SslNegotiation::Direct) => Begin::Direct,
        (_, _) => Begin::Require,
    };
    let guarded = elsewhere.filter(|_| mode == SslMode::Prefer).map(str::to_owned);
    let mut server = server.clone();
    // The client then begins with the "TLS" of `Negotiated`, and asks the server for nothing.
    server.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    Some((server, How { begin, guarded }))
}

/// Refuses a URL with a socket and another machine, where the mode leaves open whether a password may
/// cross the network in plaintext.
pub(super) fn check(server: &Config) -> Result<(), Error> {
    let is_open = server.get_ssl_mode() == SslMode::Prefer;
    if is_open && has_sockets(server) && reaches_a_network(server) {
        return Err(Error::InvalidOptions(
            "the hosts are a socket of this machine and another machine: add `sslmode=verify-full`, \
             or `sslmode=disable` if the network is your own"
                .into(),
        ));
    }
    Ok(())
}

fn has_sockets(server: &Config) -> bool {
    server.get_hosts().iter().any(|host| !matches!(host, Host::Tcp(_)))
}

/// Whether one of the hosts is another machine.
pub(super) fn reaches_a_network(server: &Config) -> bool {
    let addresses = server.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().any(|ip| !ip.is_loopback());
    }
    server.get_hosts().iter().any(|host| match host {
        Host::Tcp(name) => plaintext::is_remote(name),
        #[cfg(unix)]
        Host::Unix(_) => false,
    })
}

/// The TLS of a store, begun as its mode says.
#[derive(Clone)]
pub(super) struct Negotiated<T> {
    pub(super) tls: T,
    pub(super) how: How,
}

impl<T> MakeTlsConnect<Socket> for Negotiated<T>
where
    T: MakeTlsConnect<Socket> + 'static,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    type Stream = Unproven<Stream<T::Stream>, LoginCheck>;
    type TlsConnect = Negotiated<Option<T::TlsConnect>>;
    type Error = T::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, T::Error> {
        let is_plain = self.how.begin == Begin::Plain;
        let tls = if is_plain { None } else { Some(self.tls.make_tls_connect(host)?) };
        Ok(Negotiated { tls, how: self.how.clone() })
    }
}

impl<C> TlsConnect<Socket> for Negotiated<Option<C>>
where
    C: TlsConnect<Socket> + Send + 'static,
    C::Stream: Send,
    C::Future: Send,
{
    type Stream = Unproven<Stream<C::Stream>, LoginCheck>;
    type Error = Box<dyn StdError + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Stream, Self::Error>>;

    fn connect(self, mut socket: Socket) -> Self::Future {
        let Self { tls, how: How { begin, guarded } } = self;
        async move {
            let has_tls = match begin {
                Begin::Plain => false,
                Begin::Direct => true,
                Begin::Prefer | Begin::Require => offers_tls(&mut socket).await?,
            };
            let stream = match tls {
                Some(tls) if has_tls => {
                    let secured = tls.connect(socket).await;
                    return Ok(Unproven::new(Stream::Tls(secured.map_err(Into::into)?), LoginCheck::new(false)));
                }
                _ if begin == Begin::Require => return Err(NO_TLS.into()),
                _ => Stream::Plain(socket),
            };
            if let Some(address) = &guarded {
                plaintext::warn_once(
                    address,
                    "set `ssl = on` on the server and write `sslmode=verify-full` (with the feature \
                     `tls`), or `sslmode=disable` if the network is your own",
                );
            }
            Ok(Unproven::new(stream, LoginCheck::new(guarded.is_some())))
        }
        .boxed()
    }
}

/// Asks the server for TLS.
async fn offers_tls(socket: &mut Socket) -> Result<bool, Box<dyn StdError + Send + Sync>> {
    socket.write_all(&REQUEST).await?;
    socket.flush().await?;
    match socket.read_u8().await? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        _ => Err("the server does not answer the request for TLS as PostgreSQL does".into()),
    }
}

/// A connection with TLS, or without.
pub(super) enum Stream<T> {
    Plain(Socket),
    Tls(T),
}

impl<T: TlsStream + Unpin> TlsStream for Stream<T> {
    fn channel_binding(&self) -> ChannelBinding {
        match self {
            Self::Plain(_) => ChannelBinding::none(),
            Self::Tls(stream) => stream.channel_binding(),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Stream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Stream<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
