//! One connection through the proxy: each direction has a reader that never waits and a writer that
//! applies the switches and the rules.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::replies::{self, Event, Pending, Reply};
use super::resp::{self, Splitter};
use super::script::{self, Fault, Gate};
use super::{Controls, Flow, locked, wait_until};

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
    fault: Option<(Fault, Gate)>,
}

/// Forwards frames in both directions until both sides have closed, or one has failed.
pub(super) async fn run(client: TcpStream, server: TcpStream, controls: Controls) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (requests, request_queue) = unbounded_channel();
    let (events, event_queue) = unbounded_channel();
    // An error on one side ends the other: dropping the halves closes both sockets.
    let all = tokio::try_join!(
        read_requests(from_client, requests, &controls),
        write_requests(request_queue, to_server, events.clone(), controls.clone()),
        read_replies(from_server, events, &controls),
        replies::write(event_queue, to_client, controls.clone()),
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
        let fault = if replies > 0 { locked(&controls.script).record_request(&name) } else { None };
        if let Some((Fault::Delay(delay), _)) = fault {
            chunk.due += delay;
        }
        queue.send(Request { chunk, name, replies, fault }).ok();
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
        events.send(Event::Frame(chunk)).ok();
    })
    .await;
    events.send(Event::Closed).ok();
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
    let mut lost_bytes = false;
    while let Some(Request { chunk, name, replies, mut fault }) = queue.recv().await {
        wait_until(chunk.due).await;
        if let Some((Fault::HoldRequest, gate)) = &mut fault {
            gate.wait_until_open().await;
        }
        lost_bytes |= controls.flow(|now| now.requests).await == Flow::Swallow;
        if lost_bytes {
            continue;
        }
        let due = Instant::now() + controls.switches.borrow().delay;
        let expect = |reply| {
            // The receiver is gone once the server has closed the connection.
            events.send(Event::Request(Pending { name, due, reply })).ok();
        };
        match fault {
            Some((Fault::SwallowRequest, _)) => lost_bytes = true,
            Some((Fault::Answer(line), _)) => expect(Reply::Error(line)),
            Some((Fault::CutBefore, _)) => {
                expect(Reply::Close);
                lost_bytes = true;
            }
            Some((Fault::HalfOpen, _)) => {
                let (sender, silenced) = oneshot::channel();
                expect(Reply::Silence(sender));
                lost_bytes = true;
                // Wait until the server has replied to the earlier requests.
                silenced.await.ok();
                to.shutdown().await?;
            }
            fault => {
                lost_bytes = matches!(fault, Some((Fault::CutAfter, _)));
                // Send the event first, so that the reply finds its request.
                if replies > 0 {
                    expect(Reply::FromServer { left: replies, fault });
                }
                to.write_all(&chunk.bytes).await?;
            }
        }
    }
    // The end of the stream is forwarded like its bytes, after them.
    controls.flow(|now| now.requests).await;
    to.shutdown().await
}
