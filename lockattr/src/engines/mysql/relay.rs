//! TLS between the MySQL client and its server.
//!
//! The client takes neither a `rustls::ClientConfig` nor a stream of the program's. Its own TLS uses
//! the process' provider of cryptography, and installs one if there is none. But it also connects to
//! Unix sockets. So each connection of the client goes to a socket of this process, and a task relays
//! it to the server, through TLS. The socket accepts no other process.

use std::io;
use std::sync::Arc;

use mysql_async::{Conn, Error, Opts, OptsBuilder};
use rustls::ClientConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio_rustls::client::TlsStream;

use super::handshake::{Packet, Packets};
use super::login::Failure;
use crate::engines::tls::{Verification, refusal, relay, secure};
use crate::store::StoreError;

/// A server that has greeted, and offers TLS.
pub(super) struct Greeted {
    stream: TcpStream,
    greeting: Packet,
}

impl Greeted {
    /// Connects to the server. `None` if it does not offer TLS.
    pub(super) async fn connect(opts: &Opts) -> io::Result<Option<Self>> {
        let mut stream = TcpStream::connect((opts.ip_or_hostname(), opts.tcp_port())).await?;
        stream.set_nodelay(true)?;
        if let Some(after) = opts.tcp_keepalive() {
            let socket = SockRef::from(&stream);
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(after))?;
            // A server that reads nothing more would keep the relay without end, in a write.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            socket.set_tcp_user_timeout(Some(after * 2))?;
        }
        let mut packets = Packets::default();
        let greeting = packets.next(&mut stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if let Some(refusal) = greeting.refusal() {
            return Err(io::Error::other(refusal));
        }
        // What follows in plaintext would be taken for what comes through TLS (CVE-2021-23222 of
        // PostgreSQL's clients). An honest server waits for the answer.
        if !packets.rest().is_empty() {
            return Err(io::Error::other("it sent data before TLS, as only an attacker does"));
        }
        Ok(greeting.offers_tls().then_some(Self { stream, greeting }))
    }

    /// Opens the client's connection to this server.
    pub(super) async fn open(
        self,
        opts: Opts,
        config: Arc<ClientConfig>,
        verification: Verification,
    ) -> Result<Conn, Failure> {
        let host = opts.ip_or_hostname().to_owned();
        let (listener, path) = listen().map_err(|error| Failure::Client(error.into()))?;
        let _file = SocketFile(path.clone());
        let (failed, reason) = oneshot::channel();
        tokio::spawn(serve(self, listener, (host, verification), config, failed));
        let opts = OptsBuilder::from_opts(opts).socket(Some(path));
        match Conn::new(opts).await {
            // The server's own words.
            Err(error @ Error::Server(_)) => Err(Failure::Client(error)),
            // The relay ends with the client's connection.
            Err(error) => Err(reason.await.map_or(Failure::Client(error), Failure::Tls)),
            Ok(connection) => Ok(connection),
        }
    }

    /// Relays the handshake, with TLS between its first packets and the login.
    async fn log_in(
        self,
        client: &mut UnixStream,
        (host, verification): (&str, Verification),
        config: Arc<ClientConfig>,
    ) -> Result<Option<TlsStream<TcpStream>>, StoreError> {
        let Self { mut stream, greeting } = self;
        let failed = |error: io::Error| refusal(host, error);
        let mut answers = Packets::default();
        client.write_all(greeting.without_tls().bytes()).await.map_err(failed)?;
        let Some(answer) = answers.next(client).await.map_err(failed)? else { return Ok(None) };
        let (request, answer) = answer.with_tls().map_err(failed)?;
        stream.write_all(request.bytes()).await.map_err(failed)?;
        let mut server = tokio::select! {
            secured = secure(stream, (host, verification), config) => secured?,
            // The client sends nothing until the server has answered: its caller gave up.
            _ = answers.next(client) => return Ok(None),
        };
        server.write_all(answer.bytes()).await.map_err(failed)?;
        server.flush().await.map_err(failed)?;
        // The server counts one packet more than the client: the request for TLS.
        let mut packets = Packets::default();
        loop {
            tokio::select! {
                reply = packets.next(&mut server) => {
                    let Some(reply) = reply.map_err(failed)? else { return Ok(None) };
                    let is_last = reply.is_last();
                    client.write_all(reply.moved(-1).bytes()).await.map_err(failed)?;
                    if is_last {
                        client.write_all(&packets.rest()).await.map_err(failed)?;
                        server.write_all(&answers.rest()).await.map_err(failed)?;
                        return Ok(Some(server));
                    }
                }
                answer = answers.next(client) => {
                    let Some(answer) = answer.map_err(failed)? else { return Ok(None) };
                    server.write_all(answer.moved(1).bytes()).await.map_err(failed)?;
                    server.flush().await.map_err(failed)?;
                }
            }
        }
    }
}

/// Relays one connection, until either side closes it.
async fn serve(
    server: Greeted,
    listener: UnixListener,
    (host, verification): (String, Verification),
    config: Arc<ClientConfig>,
    mut failed: oneshot::Sender<StoreError>,
) {
    let accepted = tokio::select! {
        accepted = accept(&listener) => accepted,
        // The caller gave up.
        () = failed.closed() => return,
    };
    drop(listener);
    let Ok(mut client) = accepted else { return };
    let server = match server.log_in(&mut client, (&host, verification), config).await {
        Ok(Some(server)) => server,
        Ok(None) => return,
        Err(error) => return drop(failed.send(error)),
    };
    drop(failed);
    relay(client, server).await;
}

/// A socket that only this process may connect to, and its name.
fn listen() -> io::Result<(UnixListener, String)> {
    let name = format!("lockattr-{}-{:016x}", std::process::id(), rand::random::<u64>());
    // Linux keeps such names out of the file system, which may not be writable.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let path = format!("\0{name}");
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let path = std::env::temp_dir().join(name).to_string_lossy().into_owned();
    Ok((UnixListener::bind(&path)?, path))
}

/// Accepts the client of this process, and turns others away.
async fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    let own = i32::try_from(std::process::id()).ok();
    loop {
        let (stream, _) = listener.accept().await?;
        if stream.peer_cred()?.pid() == own {
            return Ok(stream);
        }
    }
}

/// Removes the socket's name once it has connected, or no caller waits for it any more.
struct SocketFile(String);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.0.starts_with('\0') {
            let _no_longer_there = std::fs::remove_file(&self.0);
        }
    }
}
