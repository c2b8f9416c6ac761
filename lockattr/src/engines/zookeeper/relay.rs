//! TLS between the ZooKeeper client and its servers.
//!
//! The client takes neither a `rustls::ClientConfig` nor a stream of the program's, and connects to
//! TCP addresses only. So the store listens on the loopback interface, at one port for each server,
//! and relays each connection to that server through TLS. The client chooses among the ports as it
//! would among the servers. A port stays open as long as the thread of the store runs, on which the
//! client runs too: another process cannot take the port over and receive the client's password.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::OnceCell;
use rustls::ClientConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::client::TlsStream;
use zookeeper_client::Connector;

use super::admission::Secret;
use crate::engines::dial::dial;
use crate::engines::relay::relay;
use crate::engines::tls::{Verification, explained, refusal, secure};
use crate::platform::sync::Mutex;
use crate::store::StoreError;

/// How many connections of one port may be unproven at a time. Those of other processes must not use
/// up the descriptors of this one.
const MAX_UNPROVEN: usize = 16;

/// How long to wait before another try to accept, if the process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The relay of one store.
pub(super) struct Relay {
    secret: Secret,
    config: Arc<ClientConfig>,
    servers: Vec<Arc<Server>>,
    /// How long one attempt at one address may take.
    attempt: Duration,
    /// How long a server may take to open a session.
    limit: Duration,
    /// The port for each server.
    ports: OnceCell<Vec<SocketAddr>>,
}

struct Server {
    host: String,
    port: u16,
    /// The address that answered when the session was made. The client would not wait for a slow look-up.
    found: Mutex<Option<SocketAddr>>,
    /// Why the last connection to it failed, if TLS was the reason.
    refusal: Mutex<Option<StoreError>>,
}

impl Relay {
    /// `hosts` are written as `host:port`.
    pub(super) fn new(
        hosts: &[String],
        config: Arc<ClientConfig>,
        (attempt, limit): (Duration, Duration),
    ) -> Arc<Self> {
        let servers = hosts.iter().filter_map(|host| Server::named(host)).map(Arc::new).collect();
        let (secret, ports) = (Secret::random(), OnceCell::new());
        Arc::new(Self { secret, config, servers, attempt, limit, ports })
    }

    /// Returns the client's addresses of the servers. Listens at them from the first call on, which
    /// the thread of the store makes.
    pub(super) fn hosts(
        self: &Arc<Self>,
        found: &[Option<SocketAddr>],
    ) -> Result<Vec<String>, StoreError> {
        for (server, found) in self.servers.iter().zip(found) {
            *server.found.lock() = *found;
        }
        let ports = self.ports.get_or_try_init(|| self.listen()).map_err(|error| {
            let sentence = "no port of the loopback interface can be opened for TLS";
            StoreError::new(format!("{sentence}: {error}")).with_source(error).not_sent()
        })?;
        Ok(ports.iter().map(SocketAddr::to_string).collect())
    }

    /// Adds what the relay demands of the store's client.
    pub(super) fn admitted(&self, connector: Connector) -> Connector {
        self.secret.added_to(connector)
    }

    /// Why TLS to a server failed at the last try.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        self.servers.iter().find_map(|server| server.refusal.lock().clone())
    }

    fn listen(self: &Arc<Self>) -> io::Result<Vec<SocketAddr>> {
        let mut ports = Vec::new();
        let mut listeners = Vec::new();
        for server in &self.servers {
            let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            ports.push(listener.local_addr()?);
            listeners.push((TcpListener::from_std(listener)?, server.clone()));
        }
        for (listener, server) in listeners {
            tokio::spawn(accept(self.clone(), listener, server));
        }
        Ok(ports)
    }

    /// Relays one connection, until either side closes it.
    async fn serve(
        &self,
        server: &Server,
        mut client: TcpStream,
        unproven: OwnedSemaphorePermit,
    ) -> io::Result<()> {
        // Small requests would wait for the peer's delayed ACK.
        client.set_nodelay(true)?;
        let admitted = timeout(self.limit, self.secret.admit(&mut client)).await??;
        drop(unproven);
        let opened = async {
            let Some(mut stream) = self.connect(server).await? else { return Ok(None) };
            match admitted.open(&mut client, &mut stream).await {
                Ok(()) => Ok(Some(stream)),
                Err(error) => {
                    // A server without a leader ends the connection too.
                    if explained(&server.host, &error).is_some() {
                        server.note(Some(refusal(&server.host, error)));
                    }
                    Ok::<_, io::Error>(None)
                }
            }
        };
        // The client sees its connection closed, and tries the next server.
        let Some(stream) = timeout(self.limit, opened).await?? else { return Ok(()) };
        server.note(None);
        relay(client, stream).await;
        Ok(())
    }

    async fn connect(&self, server: &Server) -> io::Result<Option<TlsStream<TcpStream>>> {
        let found = *server.found.lock();
        let host = found.map_or_else(|| server.host.clone(), |found| found.ip().to_string());
        // A server that is down has refused nothing.
        let stream = dial(&host, server.port, self.attempt).await.inspect_err(|_| {
            *server.found.lock() = None;
            server.note(None);
        })?;
        match secure(stream, (&server.host, Verification::Full), self.config.clone()).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) => {
                server.note(Some(error));
                Ok(None)
            }
        }
    }
}

impl Server {
    fn named(host: &str) -> Option<Self> {
        let (host, port) = host.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let (found, refusal) = Default::default();
        Some(Self { host, port: port.parse().ok()?, found, refusal })
    }

    /// Notes how the last connection went. The client's own messages name a port of the relay.
    fn note(&self, refusal: Option<StoreError>) {
        let before = std::mem::replace(&mut *self.refusal.lock(), refusal.clone());
        let Some(refusal) = refusal else { return };
        if before.is_none_or(|before| before.to_string() != refusal.to_string()) {
            tracing::warn!(
                server.address = %format_args!("{}:{}", self.host, self.port),
                "no session with this server: {refusal}"
            );
        }
    }
}

/// Accepts connections as long as the thread of the store runs.
async fn accept(relay: Arc<Relay>, listener: TcpListener, server: Arc<Server>) {
    let unproven = Arc::new(Semaphore::new(MAX_UNPROVEN));
    loop {
        let Ok(permit) = unproven.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((client, _)) => {
                let (relay, server) = (relay.clone(), server.clone());
                // A connection that fails is closed, which is all that its client needs to know.
                tokio::spawn(async move { drop(relay.serve(&server, client, permit).await) });
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::engines::tls::client_config;
    use crate::lock::server_options::TlsFiles;

    fn relay_to(server: &TcpListener) -> Arc<Relay> {
        let config = client_config(&TlsFiles::default(), Verification::None).expect("no files");
        let hosts = [server.local_addr().expect("bound").to_string()];
        let limits = (Duration::from_secs(10), Duration::from_secs(10));
        Relay::new(&hosts, Arc::new(config), limits)
    }

    #[tokio::test]
    async fn a_stranger_on_the_machine_reaches_no_server() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let relay = relay_to(&server);
        let port = relay.hosts(&[]).expect("a port").remove(0);
        let mut stranger = TcpStream::connect(&port).await.expect("anyone can connect");
        let guessed = Secret::random().first_bytes();
        stranger.write_all(&guessed).await.expect("accepted");
        let mut replies = Vec::new();
        // Closed, or reset because not all was read.
        let _closed = stranger.read_to_end(&mut replies).await;
        assert!(replies.is_empty());
        let server = server.into_std().expect("a listener");
        let none = server.accept().expect_err("nothing was relayed");
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        let server = TcpListener::from_std(server).expect("a listener");
        let mut own = TcpStream::connect(&port).await.expect("as any");
        own.write_all(&relay.secret.first_bytes()).await.expect("accepted");
        let _relayed = server.accept().await.expect("the relay connects");
    }

    /// The client sees a closed connection at once, not a silent one.
    #[tokio::test]
    async fn a_dead_server_closes_the_connection_of_the_client() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let relay = relay_to(&server);
        drop(server);
        let port = relay.hosts(&[]).expect("a port").remove(0);
        let mut own = TcpStream::connect(&port).await.expect("the relay listens");
        own.write_all(&relay.secret.first_bytes()).await.expect("accepted");
        let _closed = own.read_to_end(&mut Vec::new()).await;
        assert!(relay.refusal().is_none());
    }

    #[test]
    fn the_ports_close_with_the_runtime_of_the_store() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let port = runtime.block_on(async {
            let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            relay_to(&server).hosts(&[]).expect("a port").remove(0)
        });
        assert!(std::net::TcpStream::connect(&port).is_ok());
        drop(runtime);
        assert!(std::net::TcpStream::connect(&port).is_err());
    }
}
