//! Writes replies to the client of one connection: the server's, matched to their requests, and the
//! proxy's own.

use std::collections::VecDeque;
use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connection::Chunk;
use super::resp::{is_error, is_push, words};
use super::script::{Fault, Gate};
use super::{Controls, Flow, locked, wait_until};

/// The writer's input, in the order of the stream.
pub(super) enum Event {
    /// A request is about to be sent to the server, or the proxy itself replies to it.
    Request(Pending),
    /// The server has sent a frame.
    Frame(Chunk),
    /// The server has closed the connection.
    Closed,
}

/// A request whose reply is still to come.
pub(super) struct Pending {
    pub(super) name: String,
    /// When the proxy's own reply may arrive.
    pub(super) due: Instant,
    pub(super) reply: Reply,
}

pub(super) enum Reply {
    /// The next `left` frames of the server.
    FromServer { left: usize, fault: Option<(Fault, Gate)> },
    /// The proxy's own error.
    Error(String),
    /// The connection is closed.
    Close,
    /// No more replies, without end. The sender is notified first.
    Silence(oneshot::Sender<()>),
}

impl Pending {
    fn is_from_proxy(&self) -> bool {
        !matches!(self.reply, Reply::FromServer { .. })
    }
}

/// Writes until the server has closed the connection. An error closes both sides at once.
pub(super) async fn write(
    mut events: UnboundedReceiver<Event>,
    to: OwnedWriteHalf,
    controls: Controls,
) -> io::Result<()> {
    let mut writer = Writer { to, controls, pending: VecDeque::new(), lost_bytes: false };
    while let Some(event) = events.recv().await {
        match event {
            Event::Request(request) => writer.pending.push_back(request),
            Event::Frame(chunk) => writer.write_frame(chunk).await?,
            Event::Closed => return writer.end().await,
        }
        if let Some(silence) = writer.write_own_replies().await? {
            silence.send(()).ok();
            // The client's side stays open until the client closes it.
            while events.recv().await.is_some() {}
        }
    }
    Ok(())
}

struct Writer {
    to: OwnedWriteHalf,
    controls: Controls,
    /// The requests that wait for replies, oldest first.
    pending: VecDeque<Pending>,
    /// Whether bytes were lost, so that nothing may follow.
    lost_bytes: bool,
}

impl Writer {
    /// Handles a frame of the server: the reply to the oldest request, or a push.
    async fn write_frame(&mut self, chunk: Chunk) -> io::Result<()> {
        wait_until(chunk.due).await;
        let bytes = &chunk.bytes;
        if is_push(bytes) && words(bytes).first() == Some(&b"message".as_slice()) {
            let passes = locked(&self.controls.script).record_message();
            return if passes { self.pass(bytes, Some("message")).await } else { Ok(()) };
        }
        // After `write_own_replies`, the oldest request is one that the server replies to.
        let Some(Pending { name, reply: Reply::FromServer { left, fault }, .. }) =
            self.pending.front_mut()
        else {
            return self.pass(bytes, None).await;
        };
        // The replies to a subscribe command are pushes with the command's name.
        if is_push(bytes) && words(bytes).first() != Some(&name.as_bytes()) {
            return self.pass(bytes, None).await;
        }
        // After an error no more replies come.
        *left = if is_error(bytes) { 0 } else { *left - 1 };
        match fault {
            Some((Fault::SwallowReply, _)) => self.lost_bytes = true,
            Some((Fault::HoldReply, gate)) => gate.wait_until_open().await,
            Some((Fault::CutAfter, _)) => return self.cut().await,
            _ => {}
        }
        let answered = if *left == 0 { self.pending.pop_front() } else { None };
        self.pass(bytes, answered.map(|request| request.name).as_deref()).await
    }

    /// Sends the proxy's own replies, as long as the oldest request has one.
    async fn write_own_replies(&mut self) -> io::Result<Option<oneshot::Sender<()>>> {
        while self.pending.front().is_some_and(Pending::is_from_proxy)
            && let Some(request) = self.pending.pop_front()
        {
            wait_until(request.due).await;
            match request.reply {
                Reply::FromServer { .. } => {}
                Reply::Error(line) => {
                    self.pass(format!("-{line}\r\n").as_bytes(), Some(&request.name)).await?;
                }
                Reply::Close => self.cut().await?,
                Reply::Silence(silence) => return Ok(Some(silence)),
            }
        }
        Ok(None)
    }

    /// Writes to the client, unless bytes were lost before. Counts a reply to `command`.
    async fn pass(&mut self, bytes: &[u8], command: Option<&str>) -> io::Result<()> {
        self.lost_bytes |= self.controls.flow(|now| now.replies).await == Flow::Swallow;
        if self.lost_bytes {
            return Ok(());
        }
        // Counted first, so that a client that has the reply sees it counted.
        if let Some(command) = command {
            locked(&self.controls.script).record_reply(command);
        }
        self.to.write_all(bytes).await
    }

    /// Forwards the end of the server's stream like its bytes, after them.
    async fn end(&mut self) -> io::Result<()> {
        self.controls.flow(|now| now.replies).await;
        self.to.shutdown().await
    }

    async fn cut(&mut self) -> io::Result<()> {
        self.controls.flow(|now| now.replies).await;
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}
