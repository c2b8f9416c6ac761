//! What is between the MySQL client and its server: a check of the login, and TLS.
//!
//! The client takes neither a `rustls::ClientConfig` nor a stream of the program's. Its own TLS uses
//! the process' provider of cryptography, and installs one if there is none. Its own login answers a
//! server that has not proved itself, whatever it asks. But the client also connects to Unix sockets.
//! So its connection goes to a socket of this process, and is relayed to the server. The socket accepts
//! no other process.

use std::io;
#[cfg(feature = "tls")]
use std::sync::Arc;
use std::time::Duration;

use mysql_async::{Conn, Error, Opts, OptsBuilder};
#[cfg(feature = "tls")]
use rustls::ClientConfig;
use socket2::TcpKeepalive;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::handshake::{Packet, Packets};
use super::login::{Failure, addresses};
use super::login_check::{LoginCheck, Next, Passwords, Refusal};
use super::server_key::ServerKey;
use crate::engines::dial::{KeepAlive, first_of, handshake_limit, no_answer};
use crate::engines::relay::relay;
#[cfg(feature = "tls")]
use crate::engines::tls::{Verification, refusal, secure};
use crate::store::StoreError;

/// Asks the server for its key.
const KEY_REQUEST: &[u8] = &[2];

const NO_KEY: &str = "the server sent no RSA key that a password can be encrypted with: use TLS \
                      (`ssl-mode=verify_identity`, with the feature `tls`)";

/// Ends a connection.
const QUIT: &[u8] = &[1];

/// What a connection with TLS verifies, and how.
#[cfg(feature = "tls")]
pub(super) type Tls = (Arc<ClientConfig>, Verification);
#[cfg(not(feature = "tls"))]
pub(super) type Tls = std::convert::Infallible;

/// A server that has greeted.
pub(super) struct Greeted {
    stream: TcpStream,
    greeting: Packet,
}

impl Greeted {
    /// Connects to the server. `limit` is for one attempt at one address.
    pub(super) async fn connect(opts: &Opts, limit: Duration) -> io::Result<Self> {
        let mut stream = first_of(addresses(opts).await?, limit).await?;
        let keep_alive = KeepAlive {
            probes: opts.tcp_keepalive().map(|after| TcpKeepalive::new().with_time(after)),
            // A server that reads nothing more would keep the relay without end, in a write.
            user_timeout: opts.tcp_keepalive().map(|after| after * 2),
        };
        keep_alive.set(&stream)?;
        let mut packets = Packets::default();
        let limit = handshake_limit(limit);
        let greeting = timeout(limit, packets.next(&mut stream)).await;
        let greeting = greeting.unwrap_or_else(|_| Err(no_answer(limit)))?;
        let greeting = greeting.ok_or(io::ErrorKind::UnexpectedEof)?;
        if let Some(refusal) = greeting.refusal() {
            return Err(io::Error::other(refusal));
        }
        // What follows in plaintext would be taken for what comes through TLS (CVE-2021-23222 of
        // PostgreSQL's clients). An honest server waits for the answer.
        if !packets.rest().is_empty() {
            return Err(io::Error::other("it sent data before TLS, as only an attacker does"));
        }
        Ok(Self { stream, greeting })
    }

    #[cfg(feature = "tls")]
    pub(super) fn offers_tls(&self) -> bool {
        self.greeting.offers_tls()
    }

    /// Opens the client's connection to this server, which stays relayed.
    pub(super) async fn open(
        self,
        opts: Opts,
        address: &str,
        passwords: Passwords,
        tls: Option<Tls>,
    ) -> Result<Conn, Failure> {
        let login = self.login(&opts, address, passwords, tls)?;
        let (listener, file) = listen().map_err(|error| Failure::Client(error.into()))?;
        let (failed, reason) = oneshot::channel();
        tokio::spawn(serve(login, listener, failed));
        match Conn::new(OptsBuilder::from_opts(opts).socket(Some(&file.0))).await {
            // The server's own words.
            Err(error @ Error::Server(_)) => Err(Failure::Client(error)),
            // The relay ends with the client's connection.
            Err(error) => Err(reason.await.map_or(Failure::Client(error), Failure::Relay)),
            Ok(connection) => Ok(connection),
        }
    }

    /// Logs in for a trial, and ends the connection. Returns whether the client can then connect without
    /// a relay, to a server that asks for nothing which takes long, or makes the client panic.
    pub(super) async fn try_login(self, opts: &Opts, address: &str) -> Result<bool, Failure> {
        let mut login = self.login(opts, address, Passwords::ByKey, None)?;
        let (listener, file) = listen().map_err(|error| Failure::Client(error.into()))?;
        let opts = OptsBuilder::from_opts(opts.clone()).socket(Some(&file.0));
        let mut client = Conn::new(opts.init(Vec::<String>::new()).setup(Vec::<String>::new()));
        let served = async {
            let client = accept(&listener).await;
            let client = client.map_err(|error| broken(address, None, error))?;
            login.run(&mut { client }).await
        };
        let served = tokio::select! {
            biased;
            served = served => served,
            // Only its errors come before the server's consent.
            connected = &mut client => return connected.map(|_| false).map_err(Failure::Client),
        };
        let Some(mut server) = served.map_err(Failure::Relay)? else {
            return client.await.map(|_| false).map_err(Failure::Client);
        };
        // The server counts this connection until it closes it.
        let _closed = server.write_all(Packet::new(0, QUIT).bytes()).await;
        let _nothing = server.read_u8().await;
        Ok(!login.check.is_needed())
    }

    fn login(
        self,
        opts: &Opts,
        address: &str,
        passwords: Passwords,
        tls: Option<Tls>,
    ) -> Result<Login, Failure> {
        let check = LoginCheck::new(&self.greeting, passwords, opts.enable_cleartext_plugin());
        let check = check.map_err(|refusal| Failure::Relay(sentence(address, refusal)))?;
        let (address, host) = (address.to_owned(), opts.ip_or_hostname().to_owned());
        Ok(Login { server: Some(self), check, address, host, tls })
    }
}

/// A server, whatever is between.
trait Server: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Server for S {}

/// A login of the client to a server.
struct Login {
    /// `None` once it has begun.
    server: Option<Greeted>,
    check: LoginCheck,
    address: String,
    host: String,
    tls: Option<Tls>,
}

impl Login {
    /// Relays the login, and checks what the server sends. Returns the server once it has accepted the
    /// client; `None` if one of them has ended the connection.
    async fn run(
        &mut self,
        client: &mut UnixStream,
    ) -> Result<Option<Box<dyn Server>>, StoreError> {
        let Self { server, check, address, host, tls } = self;
        let Some(Greeted { stream, greeting }) = server.take() else { return Ok(None) };
        let secured = tls.is_some().then_some(&**host);
        let failed = |error| broken(address, secured, error);
        let mut answers = Packets::default();
        client.write_all(greeting.without_tls().bytes()).await.map_err(failed)?;
        let Some(answer) = answers.next(client).await.map_err(failed)? else { return Ok(None) };
        let (mut server, answer, mut ahead): (Box<dyn Server>, _, i8) = match tls.take() {
            None => (Box::new(stream), answer, 0),
            #[cfg(feature = "tls")]
            Some(tls) => {
                let (request, answer) = answer.with_tls().map_err(failed)?;
                let secured = tokio::select! {
                    secured = begin_tls(stream, request, host, tls) => secured?,
                    // The client sends nothing until the server has answered: its caller gave up.
                    _ = answers.next(client) => return Ok(None),
                };
                // The server counts one packet more than the client: the request for TLS.
                (secured, answer, 1)
            }
            #[cfg(not(feature = "tls"))]
            Some(tls) => match tls {},
        };
        let mut packets = Packets::default();
        send(&mut server, &answer).await.map_err(failed)?;
        loop {
            let reply = tokio::select! {
                reply = packets.next(&mut server) => reply.map_err(failed)?,
                answer = answers.next(client) => {
                    let Some(answer) = answer.map_err(failed)? else { return Ok(None) };
                    send(&mut server, &answer.moved(ahead)).await.map_err(failed)?;
                    continue;
                }
            };
            let Some(reply) = reply else { return Ok(None) };
            let (next, reply) = check.read(reply).map_err(|refusal| sentence(address, refusal))?;
            client.write_all(reply.moved(-ahead).bytes()).await.map_err(failed)?;
            match next {
                Next::Login => {}
                Next::Refused => return Ok(None),
                Next::Password => {
                    let password = answers.next(client).await.map_err(failed)?;
                    let Some(password) = password else { return Ok(None) };
                    let password = password.moved(ahead);
                    let sent = by_key(&mut server, &mut packets, &password, check.nonce()).await;
                    sent.map_err(failed)?;
                    // The request for the key, and the key.
                    ahead += 2;
                }
                Next::End => {
                    client.write_all(&packets.rest()).await.map_err(failed)?;
                    server.write_all(&answers.rest()).await.map_err(failed)?;
                    return Ok(Some(server));
                }
            }
        }
    }
}

#[cfg(feature = "tls")]
async fn begin_tls(
    mut stream: TcpStream,
    request: Packet,
    host: &str,
    (config, verification): Tls,
) -> Result<Box<dyn Server>, StoreError> {
    let written = stream.write_all(request.bytes()).await;
    written.map_err(|error| refusal(host, error))?;
    Ok(Box::new(secure(stream, (host, verification), config).await?))
}

async fn send(server: &mut Box<dyn Server>, packet: &Packet) -> io::Result<()> {
    server.write_all(packet.bytes()).await?;
    server.flush().await
}

/// Sends the client's password, encrypted with the key of the server.
async fn by_key(
    server: &mut Box<dyn Server>,
    packets: &mut Packets,
    password: &Packet,
    nonce: &[u8],
) -> io::Result<()> {
    let number = password.number();
    send(server, &Packet::new(number, KEY_REQUEST)).await?;
    let key = packets.next(server).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let encrypted = ServerKey::read(key.payload())
        .and_then(|key| key.encrypt(password.payload(), nonce))
        .ok_or_else(|| io::Error::other(NO_KEY))?;
    send(server, &Packet::new(number.wrapping_add(2), &encrypted)).await
}

/// Why a connection broke, which has TLS to a host or has none.
#[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "no TLS here"))]
fn broken(address: &str, secured: Option<&str>, error: io::Error) -> StoreError {
    #[cfg(feature = "tls")]
    if let Some(host) = secured {
        return refusal(host, error);
    }
    StoreError::new(format!("{address}: {error}")).with_source(error)
}

/// Why the login was ended.
fn sentence(address: &str, refusal: Refusal) -> StoreError {
    StoreError::new(match refusal {
        Refusal::Unexpected => format!("{address}: an unexpected packet in the login"),
        Refusal::Method(name) => format!(
            "{address}: the server asks for a login by `{}`, which is not supported: give the user \
             another method, such as `caching_sha2_password`, `ed25519` or `mysql_native_password`",
            name.escape_debug()
        ),
        Refusal::Password => format!(
            "{address}: without TLS, the server asks for the password itself, which others on the \
             network could read: add `ssl-mode=verify_identity` (with the feature `tls`), or \
             `ssl-mode=disabled` if the network is your own"
        ),
    })
}

/// Relays one connection, until either side closes it.
async fn serve(mut login: Login, listener: UnixListener, mut failed: oneshot::Sender<StoreError>) {
    let accepted = tokio::select! {
        accepted = accept(&listener) => accepted,
        // The caller gave up.
        () = failed.closed() => return,
    };
    drop(listener);
    let Ok(mut client) = accepted else { return };
    let server = match login.run(&mut client).await {
        Ok(Some(server)) => server,
        Ok(None) => return,
        Err(error) => return drop(failed.send(error)),
    };
    drop(failed);
    relay(client, server).await;
}

/// A socket that only this process may connect to, and its name.
fn listen() -> io::Result<(UnixListener, SocketFile)> {
    let name = format!("lockattr-{}-{:016x}", std::process::id(), rand::random::<u64>());
    // Linux keeps such names out of the file system, which may not be writable.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let path = format!("\0{name}");
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let path = std::env::temp_dir().join(name).to_string_lossy().into_owned();
    Ok((UnixListener::bind(&path)?, SocketFile(path)))
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
