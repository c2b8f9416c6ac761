//! A process's access to the network: the system under it owns its connections.
//!
//! The system continues while the process is paused: it buffers what arrives until the process
//! reads it. When the process is gone, the system closes its connections.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use turmoil::net::TcpStream;

use crate::server::PORT;

/// What the network carries: the number of a message.
type Bytes = [u8; 8];

/// How often the system tells the other end that it is still there, also for a paused process. To
/// its server, that process looks alive.
const KEEPS_ALIVE: Duration = Duration::from_secs(1);

/// The keep-alive message: no message has this number.
pub(crate) const ALIVE: Bytes = [0; 8];

/// A process's end; clones are the same end.
#[derive(Clone, Debug)]
pub(crate) struct Network(mpsc::UnboundedSender<Dial>);

/// A request for a connection.
#[derive(Debug)]
struct Dial {
    address: String,
    tells: oneshot::Sender<io::Result<Socket>>,
}

/// A connection of a process. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Socket {
    sends: mpsc::UnboundedSender<Bytes>,
    comes: mpsc::UnboundedReceiver<Bytes>,
}

/// The system's end, which a simulated host runs.
#[derive(Debug)]
pub(crate) struct System(mpsc::UnboundedReceiver<Dial>);

impl Network {
    /// Creates both ends.
    pub(crate) fn new() -> (Self, System) {
        let (asks, asked) = mpsc::unbounded_channel();
        (Self(asks), System(asked))
    }

    /// Connects to the server of this name.
    ///
    /// # Errors
    ///
    /// If it cannot be reached.
    pub(crate) async fn connect(&self, address: &str) -> io::Result<Socket> {
        let (tells, told) = oneshot::channel();
        let dial = Dial { address: address.to_owned(), tells };
        self.0.send(dial).map_err(|_| io::ErrorKind::NetworkDown)?;
        told.await.unwrap_or_else(|_| Err(io::ErrorKind::NetworkDown.into()))
    }
}

impl Socket {
    /// Sends a message.
    ///
    /// # Errors
    ///
    /// If the connection is closed.
    pub(crate) fn send(&self, bytes: Bytes) -> io::Result<()> {
        self.sends.send(bytes).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns the next message. Cancel safe: no message is lost.
    ///
    /// # Errors
    ///
    /// If the connection is closed.
    pub(crate) async fn next(&mut self) -> io::Result<Bytes> {
        self.comes.recv().await.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl System {
    /// Serves the process of this host, in each of its lives.
    ///
    /// # Errors
    ///
    /// None: the process finds out that a connection has failed.
    pub(crate) async fn run(mut self) -> turmoil::Result {
        while let Some(dial) = self.0.recv().await {
            tokio::task::spawn_local(dial.connects());
        }
        Ok(())
    }
}

impl Dial {
    async fn connects(mut self) {
        let connected = tokio::select! {
            biased;
            () = self.tells.closed() => return,
            connected = TcpStream::connect((self.address.as_str(), PORT)) => connected,
        };
        match connected {
            Ok(stream) => {
                let ((sends, sent), (brings, comes)) =
                    (mpsc::unbounded_channel(), mpsc::unbounded_channel());
                if self.tells.send(Ok(Socket { sends, comes })).is_ok() {
                    carry(stream, sent, brings).await;
                }
            }
            // The process may have just given up.
            Err(error) => drop(self.tells.send(Err(error))),
        }
    }
}

/// Carries messages in both directions until either side closes the connection.
async fn carry(
    mut stream: TcpStream,
    mut sent: mpsc::UnboundedReceiver<Bytes>,
    brings: mpsc::UnboundedSender<Bytes>,
) {
    let mut bytes = Bytes::default();
    let mut quiet_since = Instant::now();
    loop {
        let to_send = tokio::select! {
            biased;
            next = sent.recv() => next,
            () = sleep_until(quiet_since + KEEPS_ALIVE) => Some(ALIVE),
            // A message is one segment, which arrives as a whole.
            read = stream.read(&mut bytes) => {
                let is_whole = matches!(read, Ok(8));
                if !is_whole || brings.send(bytes).is_err() {
                    return;
                }
                continue;
            }
        };
        let Some(bytes) = to_send else { return };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        quiet_since = Instant::now();
    }
}
