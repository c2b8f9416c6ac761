//! One connection through the proxy: two directions, each a reader that never waits and a writer
//! that obeys the switches and the rules.

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

/// A frame on its way, and when it may arrive.
pub(super) struct Chunk {
    pub(super) due: Instant,
    pub(super) bytes: Vec<u8>,
}

struct Request {
    chunk: Chunk,
    name: String,
    /// How many replies the server has for it.
    replies: usize,
    met: Option<(Fault, Gate)>,
}

/// Carries frames both ways until both sides have closed, or either has failed.
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
            // The server says nothing to an empty line.
            "" => 0,
            // One for each channel; where none is named, there is one at least.
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

/// Takes everything at once, so that a frozen network does not look like a full one to the sender.
/// A sender that breaks off has ended like any other: the receiver learns of it when the frames
/// before it have arrived. Half a frame is of no use to anybody.
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
    // A stream with a hole in it carries nothing any more: later bytes would mean something else.
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
            // No process listens any more once the server has hung up.
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
                // Not before the server has answered what came before.
                silent.await.ok();
                to.shutdown().await?;
            }
            met => {
                holed = matches!(met, Some((Fault::CutAfter, _)));
                // First told, so that the reply finds its question.
                if replies > 0 {
                    ask(Reply::Servers { left: replies, met });
                }
                to.write_all(&chunk.bytes).await?;
            }
        }
    }
    // The sender's end passes like its bytes, behind them.
    controls.flow(|now| now.requests).await;
    to.shutdown().await
}
