//! One connection through the proxy: two directions, each a reader that never waits and a writer
//! that obeys the switches.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Flow, Switches};

type Flowing = fn(&Switches) -> Flow;

/// Bytes on their way, and when they may arrive.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

/// Carries bytes both ways until both sides have closed, or either has failed.
pub(super) async fn run(
    client: TcpStream,
    upstream: Arc<str>,
    switches: watch::Receiver<Switches>,
) {
    // A server that is down closes the client's connection: the task ends here and drops it.
    let Ok(server) = TcpStream::connect(&*upstream).await else {
        return;
    };
    for stream in [&client, &server] {
        // Ours must be no slower than a cable. Where it cannot be set, it is only slower.
        stream.set_nodelay(true).ok();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = carry(from_client, to_server, switches.clone(), |switches| switches.requests);
    let replies = carry(from_server, to_client, switches, |switches| switches.replies);
    // An error on one side ends the other: dropping the halves closes both sockets.
    tokio::try_join!(requests, replies).ok();
}

async fn carry(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    switches: watch::Receiver<Switches>,
    flow: Flowing,
) -> io::Result<()> {
    let (sender, receiver) = unbounded_channel();
    let reading = async {
        read(from, sender, switches.clone()).await;
        Ok(())
    };
    tokio::try_join!(reading, write(receiver, to, switches.clone(), flow))?;
    Ok(())
}

/// Takes everything at once, so that a frozen network does not look like a full one to the sender.
/// A sender that breaks off has ended like any other: the receiver learns of it when the bytes
/// before it have arrived.
async fn read(
    mut from: OwnedReadHalf,
    queue: UnboundedSender<Chunk>,
    switches: watch::Receiver<Switches>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let due = Instant::now() + switches.borrow().delay;
        if queue.send(Chunk { due, bytes: buffer[..count].to_vec() }).is_err() {
            return;
        }
    }
}

async fn write(
    mut queue: UnboundedReceiver<Chunk>,
    mut to: OwnedWriteHalf,
    mut switches: watch::Receiver<Switches>,
    flow: Flowing,
) -> io::Result<()> {
    // A stream with a hole in it carries nothing any more: later bytes would answer other
    // questions.
    let mut holed = false;
    while let Some(chunk) = queue.recv().await {
        sleep_until(chunk.due).await;
        // The proxy is gone when its switches are; so will this task be.
        let now = switches.wait_for(|now| flow(now) != Flow::Hold).await;
        holed |= now.is_ok_and(|now| flow(&now) == Flow::Swallow);
        if !holed {
            to.write_all(&chunk.bytes).await?;
        }
    }
    // The sender's end passes like its bytes, behind them.
    switches.wait_for(|now| flow(now) != Flow::Hold).await.ok();
    to.shutdown().await
}
