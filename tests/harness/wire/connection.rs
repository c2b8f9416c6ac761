//! One connection over a wire: each direction has a reader that never waits and a writer that
//! applies the switches.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// Until when a wire carries the bytes that came before, to the server and back.
#[derive(Debug, Default)]
pub(super) struct Busy {
    requests: Until,
    replies: Until,
}

type Until = Mutex<Option<Instant>>;

/// What is changed on the way.
pub(super) type Edits = (Option<Alias>, Option<Mutation>);

/// Returns when bytes that come now have arrived, if they take so long behind those before them.
fn due(busy: &Until, delay: Duration, takes: Duration) -> Instant {
    let mut until = busy.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let carried = until.map_or(now, |until| until.max(now)) + takes;
    *until = Some(carried);
    carried + delay
}

/// Forwards bytes in both directions until both sides have closed, or one has failed.
pub(super) async fn run(
    client: TcpStream,
    server: TcpStream,
    switches: watch::Receiver<Switches>,
    (came, busy): (Arc<AtomicU64>, Arc<Busy>),
    edits: Edits,
) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // An error on one side ends the other: dropping the halves closes both sockets.
    let both = tokio::try_join!(
        forward(
            from_client,
            to_server,
            |now| now.requests,
            &switches,
            (&came, &busy.requests),
            (None, None)
        ),
        forward(
            from_server,
            to_client,
            |now| now.replies,
            &switches,
            (&came, &busy.replies),
            edits
        ),
    );
    both.ok();
}

async fn forward(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    direction: fn(&Switches) -> Flow,
    switches: &watch::Receiver<Switches>,
    traffic: (&AtomicU64, &Until),
    edits: Edits,
) -> io::Result<()> {
    let (queue, queued) = unbounded_channel();
    let reading = async {
        read(from, queue, switches, traffic, edits).await;
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
    (came, busy): (&AtomicU64, &Until),
    (alias, mutation): Edits,
) {
    let (mut buffer, mut kept) = (vec![0; 4 * 1024], Vec::new());
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        came.fetch_add(count as u64, Ordering::Relaxed);
        let Switches { delay, per_byte, .. } = *switches.borrow();
        let takes = per_byte * u32::try_from(count).expect("the buffer is small");
        let due = due(busy, delay, takes);
        let mut bytes = match alias {
            Some(alias) => alias.substitute(&buffer[..count], &mut kept),
            None => buffer[..count].to_vec(),
        };
        if let Some(mutation) = &mutation {
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
