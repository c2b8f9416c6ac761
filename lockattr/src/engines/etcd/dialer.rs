//! What opens the TCP connections of tonic's channels.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use socket2::TcpKeepalive;
use tokio::net::TcpStream;
use tonic::transport::{Endpoint, Uri};
use tower_service::Service;

use crate::engines::dial::{KeepAlive, dial};

/// Connects to one member: at first with the connection that is open already.
pub(super) struct Dialer {
    first: Option<TcpStream>,
    to: Target,
}

#[derive(Clone)]
struct Target {
    host: String,
    port: u16,
    limit: Duration,
    keep_alive: KeepAlive,
}

impl Dialer {
    /// Connects to the member of an endpoint. `None` if that is a Unix socket, which tonic itself opens.
    pub(super) async fn to(endpoint: &Endpoint, limit: Duration) -> io::Result<Option<Self>> {
        let uri = endpoint.uri();
        let port = uri.port_u16();
        // What tonic shows in place of a socket's path.
        let Some(host) = uri.host().filter(|host| port.is_some() || *host != "tonic") else {
            return Ok(None);
        };
        let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let keep_alive = KeepAlive { probes: probes(endpoint), user_timeout: None };
        let (host, port) = (host.to_owned(), port.unwrap_or(default_port));
        let to = Target { host, port, limit, keep_alive };
        Ok(Some(Self { first: Some(to.dial().await?), to }))
    }
}

impl Target {
    async fn dial(&self) -> io::Result<TcpStream> {
        let stream = dial(&self.host, self.port, self.limit).await?;
        self.keep_alive.set(&stream)?;
        Ok(stream)
    }
}

/// The program's own endpoint may ask for them.
fn probes(endpoint: &Endpoint) -> Option<TcpKeepalive> {
    let mut probes = TcpKeepalive::new().with_time(endpoint.get_tcp_keepalive()?);
    if let Some(interval) = endpoint.get_tcp_keepalive_interval() {
        probes = probes.with_interval(interval);
    }
    if let Some(retries) = endpoint.get_tcp_keepalive_retries() {
        probes = probes.with_retries(retries);
    }
    Some(probes)
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let (first, to) = (self.first.take(), self.to.clone());
        async move {
            let stream = match first {
                Some(stream) => stream,
                None => to.dial().await?,
            };
            Ok(TokioIo::new(stream))
        }
        .boxed()
    }
}
