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
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// The keep-alive message: no message has this number.
pub(crate) const ALIVE: Bytes = [0; 8];

/// A process's end; clones are the same end.
#[derive(Clone, Debug)]
pub(crate) struct Network(mpsc::UnboundedSender<Dial>);

/// A request for a connection.
#[derive(Debug)]
struct Dial {
    address: String,
    reply_to: oneshot::Sender<io::Result<Socket>>,
}

/// A connection of a process. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Socket {
    sender: mpsc::UnboundedSender<Bytes>,
    receiver: mpsc::UnboundedReceiver<Bytes>,
}

/// The system's end, which a simulated host runs.
#[derive(Debug)]
pub(crate) struct System(mpsc::UnboundedReceiver<Dial>);

impl Network {
    /// Creates both ends.
    pub(crate) fn new() -> (Self, System) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), System(receiver))
    }

    /// Connects to the server of this name.
    ///
    /// # Errors
    ///
    /// If it cannot be reached.
    pub(crate) async fn connect(&self, address: &str) -> io::Result<Socket> {
        let (reply_to, reply) = oneshot::channel();
        let dial = Dial { address: address.to_owned(), reply_to };
        self.0.send(dial).map_err(|_| io::ErrorKind::NetworkDown)?;
        reply.await.unwrap_or_else(|_| Err(io::ErrorKind::NetworkDown.into()))
    }
}

impl Socket {
    /// Sends a message.
    ///
    /// # Errors
    ///
    /// If the connection is closed.
    pub(crate) fn send(&self, bytes: Bytes) -> io::Result<()> {
        self.sender.send(bytes).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns the next message. Cancel safe: no message is lost.
    ///
    /// # Errors
    ///
    /// If the connection is closed.
    pub(crate) async fn next(&mut self) -> io::Result<Bytes> {
        self.receiver.recv().await.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
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
            tokio::task::spawn_local(dial.connect());
        }
        Ok(())
    }
}

impl Dial {
    async fn connect(mut self) {
        let connected = tokio::select! {
            biased;
            () = self.reply_to.closed() => return,
            connected = TcpStream::connect((self.address.as_str(), PORT)) => connected,
        };
        match connected {
            Ok(stream) => {
                let ((sender, outgoing), (incoming, receiver)) =
                    (mpsc::unbounded_channel(), mpsc::unbounded_channel());
                if self.reply_to.send(Ok(Socket { sender, receiver })).is_ok() {
                    carry(stream, outgoing, incoming).await;
                }
            }
            // The process may have just given up.
            Err(error) => drop(self.reply_to.send(Err(error))),
        }
    }
}

/// Carries messages in both directions until either side closes the connection.
async fn carry(
    mut stream: TcpStream,
    mut outgoing: mpsc::UnboundedReceiver<Bytes>,
    incoming: mpsc::UnboundedSender<Bytes>,
) {
    let mut bytes = Bytes::default();
    let mut quiet_since = Instant::now();
    loop {
        let to_send = tokio::select! {
            biased;
            next = outgoing.recv() => next,
            () = sleep_until(quiet_since + KEEP_ALIVE_INTERVAL) => Some(ALIVE),
            // A message is one segment, which arrives as a whole.
            read = stream.read(&mut bytes) => {
                let is_whole = matches!(read, Ok(8));
                if !is_whole || incoming.send(bytes).is_err() {
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
