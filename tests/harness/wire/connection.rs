//! One connection over a wire: each direction has a reader that never waits and a writer that
//! applies the switches.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::alias::Alias;
use super::mutation::Mutation;
use crate::network::{Flow, Switches, wait_for_flow};

/// Bytes in transit, and when they may arrive.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

/// Forwards bytes in both directions until both sides have closed, or one has failed.
pub(super) async fn run(
    client: TcpStream,
    server: TcpStream,
    switches: watch::Receiver<Switches>,
    came: Arc<AtomicU64>,
    (alias, mutation): (Option<Alias>, Mutation),
) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // An error on one side ends the other: dropping the halves closes both sockets.
    let both = tokio::try_join!(
        forward(from_client, to_server, |now| now.requests, &switches, &came, None, None),
        forward(
            from_server,
            to_client,
            |now| now.replies,
            &switches,
            &came,
            alias,
            Some(&mutation)
        ),
    );
    both.ok();
}

async fn forward(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    direction: fn(&Switches) -> Flow,
    switches: &watch::Receiver<Switches>,
    came: &AtomicU64,
    alias: Option<Alias>,
    mutation: Option<&Mutation>,
) -> io::Result<()> {
    let (queue, queued) = unbounded_channel();
    let reading = async {
        read(from, queue, switches, came, alias, mutation).await;
        Ok(())
    };
    tokio::try_join!(reading, write(queued, to, direction, switches))?;
    Ok(())
}

/// Reads everything at once, so that the sender never sees a full buffer, even on a held wire. A
/// read error counts as the end of the stream.
async fn read(
    mut from: OwnedReadHalf,
    queue: UnboundedSender<Chunk>,
    switches: &watch::Receiver<Switches>,
    came: &AtomicU64,
    alias: Option<Alias>,
    mutation: Option<&Mutation>,
) {
    let (mut buffer, mut kept) = (vec![0; 64 * 1024], Vec::new());
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        came.fetch_add(count as u64, Ordering::Relaxed);
        let due = Instant::now() + switches.borrow().delay;
        let mut bytes = match alias {
            Some(alias) => alias.substitute(&buffer[..count], &mut kept),
            None => buffer[..count].to_vec(),
        };
        if let Some(mutation) = mutation {
            mutation.apply(&mut bytes);
        }
        if queue.send(Chunk { due, bytes }).is_err() {
            return;
        }
    }
}

async fn write(
    mut queue: UnboundedReceiver<Chunk>,
    mut to: OwnedWriteHalf,
    direction: fn(&Switches) -> Flow,
    switches: &watch::Receiver<Switches>,
) -> io::Result<()> {
    let mut switches = switches.clone();
    // Once bytes are lost, the stream carries nothing more: later bytes would mean something else.
    let mut lost_bytes = false;
    while let Some(Chunk { due, bytes }) = queue.recv().await {
        // Even a sleep into the past ends at the next millisecond. Held bytes pass at once.
        if Instant::now() < due {
            sleep_until(due).await;
        }
        lost_bytes |= wait_for_flow(&mut switches, direction).await == Flow::Swallow;
        if !lost_bytes {
            to.write_all(&bytes).await?;
        }
    }
    // The end of the stream is forwarded like its bytes, after them. If bytes were lost, it is not.
    if lost_bytes || wait_for_flow(&mut switches, direction).await == Flow::Swallow {
        std::future::pending::<()>().await;
    }
    to.shutdown().await
}
