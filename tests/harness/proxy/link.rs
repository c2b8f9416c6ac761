//! One connection through the proxy: each direction has a reader that never waits and a writer that
//! applies the switches and the rules.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::replies::{self, Asked, Event, Reply};
use super::resp::{self, Splitter};
use super::script::{self, Fault, Gate};
use super::{Controls, Flow, locked};

/// A frame in transit, and when it may arrive.
pub(super) struct Chunk {
    pub(super) due: Instant,
    pub(super) bytes: Vec<u8>,
}

struct Request {
    chunk: Chunk,
    name: String,
    /// The number of replies that the server sends to it.
    replies: usize,
    met: Option<(Fault, Gate)>,
}

/// Forwards frames in both directions until both sides have closed, or one has failed.
pub(super) async fn run(client: TcpStream, server: TcpStream, controls: Controls) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (requests, queue) = unbounded_channel();
    let (events, told) = unbounded_channel();
    // An error on one side ends the other: dropping the halves closes both sockets.
    let all = tokio::try_join!(
        read_requests(from_client, requests, &controls),
        write_requests(queue, to_server, events.clone(), controls.clone()),
        read_replies(from_server, events, &controls),
        replies::write(told, to_client, controls.clone()),
    );
    all.ok();
}

async fn read_requests(
    from: OwnedReadHalf,
    queue: UnboundedSender<Request>,
    controls: &Controls,
) -> io::Result<()> {
    read(from, controls, |mut chunk| {
        let words = resp::words(&chunk.bytes);
        let name = script::name(&words);
        let replies = match name.as_str() {
            // The server does not reply to an empty line.
            "" => 0,
            // One reply for each channel, or one if no channel is named.
            _ if name.ends_with("subscribe") => words.len().max(2) - 1,
            _ => 1,
        };
        let met = if replies > 0 { locked(&controls.script).asked(&name) } else { None };
        if let Some((Fault::Delay(delay), _)) = met {
            chunk.due += delay;
        }
        queue.send(Request { chunk, name, replies, met }).ok();
    })
    .await;
    Ok(())
}

async fn read_replies(
    from: OwnedReadHalf,
    events: UnboundedSender<Event>,
    controls: &Controls,
) -> io::Result<()> {
    read(from, controls, |chunk| {
        events.send(Event::Said(chunk)).ok();
    })
    .await;
    events.send(Event::Ended).ok();
    Ok(())
}

/// Reads everything at once, so that the sender never sees a full buffer, even on a frozen network.
/// A read error counts as the end of the stream, which the receiver sees after the earlier frames.
/// An incomplete frame is dropped.
async fn read(mut from: OwnedReadHalf, controls: &Controls, mut each: impl FnMut(Chunk)) {
    let mut splitter = Splitter::new();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let due = Instant::now() + controls.switches.borrow().delay;
        splitter.push(&buffer[..count]);
        while let Some(bytes) = splitter.next_frame() {
            each(Chunk { due, bytes });
        }
    }
}

async fn write_requests(
    mut queue: UnboundedReceiver<Request>,
    mut to: OwnedWriteHalf,
    events: UnboundedSender<Event>,
    mut controls: Controls,
) -> io::Result<()> {
    // Once bytes are lost, the stream carries nothing more: later bytes would mean something else.
    let mut holed = false;
    while let Some(Request { chunk, name, replies, mut met }) = queue.recv().await {
        sleep_until(chunk.due).await;
        if let Some((Fault::HoldRequest, gate)) = &mut met {
            gate.opened().await;
        }
        holed |= controls.flow(|now| now.requests).await == Flow::Swallow;
        if holed {
            continue;
        }
        let due = Instant::now() + controls.switches.borrow().delay;
        let ask = |reply| {
            // The receiver is gone once the server has closed the connection.
            events.send(Event::Asked(Asked { name, due, reply })).ok();
        };
        match met {
            Some((Fault::SwallowRequest, _)) => holed = true,
            Some((Fault::Answer(line), _)) => ask(Reply::Error(line)),
            Some((Fault::CutBefore, _)) => {
                ask(Reply::End);
                holed = true;
            }
            Some((Fault::HalfOpen, _)) => {
                let (sender, silent) = oneshot::channel();
                ask(Reply::Silence(sender));
                holed = true;
                // Wait until the server has replied to the earlier requests.
                silent.await.ok();
                to.shutdown().await?;
            }
            met => {
                holed = matches!(met, Some((Fault::CutAfter, _)));
                // Send the event first, so that the reply finds its request.
                if replies > 0 {
                    ask(Reply::Servers { left: replies, met });
                }
                to.write_all(&chunk.bytes).await?;
            }
        }
    }
    // The end of the stream is forwarded like its bytes, after them.
    controls.flow(|now| now.requests).await;
    to.shutdown().await
}
