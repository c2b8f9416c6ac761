//! What goes to the client of one connection: the server's replies, each to its request, and those
//! that the proxy gives itself.

use std::collections::VecDeque;
use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::link::Chunk;
use super::resp::{is_error, is_push, words};
use super::script::{Fault, Gate};
use super::{Controls, Flow, locked};

/// What the writer is asked, in the order of the stream.
pub(super) enum Event {
    /// A request is about to be sent, or dealt with here.
    Asked(Asked),
    /// The server has said something.
    Said(Chunk),
    /// The server has hung up.
    Ended,
}

/// A request that waits for its reply.
pub(super) struct Asked {
    pub(super) name: String,
    /// When a reply that the server knows nothing of may arrive.
    pub(super) due: Instant,
    pub(super) reply: Reply,
}

pub(super) enum Reply {
    /// What the server says next, so many times.
    Servers { left: usize, met: Option<(Fault, Gate)> },
    /// An error of ours.
    Error(String),
    /// The end of the connection.
    End,
    /// Nothing more forever, once the sender has been told.
    Silence(oneshot::Sender<()>),
}

impl Asked {
    fn is_ours(&self) -> bool {
        !matches!(self.reply, Reply::Servers { .. })
    }
}

/// Writes until the server has hung up. An error ends the connection at once, on both sides.
pub(super) async fn write(
    mut events: UnboundedReceiver<Event>,
    to: OwnedWriteHalf,
    controls: Controls,
) -> io::Result<()> {
    let mut writer = Writer { to, controls, asked: VecDeque::new(), holed: false };
    while let Some(event) = events.recv().await {
        match event {
            Event::Asked(asked) => writer.asked.push_back(asked),
            Event::Said(chunk) => writer.servers(chunk).await?,
            Event::Ended => return writer.end().await,
        }
        if let Some(silence) = writer.ours().await? {
            silence.send(()).ok();
            // The client's side stays open until the client has closed its own.
            while events.recv().await.is_some() {}
        }
    }
    Ok(())
}

struct Writer {
    to: OwnedWriteHalf,
    controls: Controls,
    /// The oldest first, which is the next to be answered.
    asked: VecDeque<Asked>,
    /// Bytes were lost, so nothing may follow.
    holed: bool,
}

impl Writer {
    /// Deals with what the server has said: the reply to the oldest request, or a push.
    async fn servers(&mut self, chunk: Chunk) -> io::Result<()> {
        sleep_until(chunk.due).await;
        let bytes = &chunk.bytes;
        if is_push(bytes) && words(bytes).first() == Some(&b"message".as_slice()) {
            let arrives = locked(&self.controls.script).told();
            return if arrives { self.pass(bytes, Some("message")).await } else { Ok(()) };
        }
        // `ours` has seen to it that what is next is for the server to answer.
        let Some(Asked { name, reply: Reply::Servers { left, met }, .. }) = self.asked.front_mut()
        else {
            return self.pass(bytes, None).await;
        };
        // Subscribing is answered by pushes that bear the command's name.
        if is_push(bytes) && words(bytes).first() != Some(&name.as_bytes()) {
            return self.pass(bytes, None).await;
        }
        // An error is all there will be.
        *left = if is_error(bytes) { 0 } else { *left - 1 };
        match met {
            Some((Fault::SwallowReply, _)) => self.holed = true,
            Some((Fault::HoldReply, gate)) => gate.opened().await,
            Some((Fault::CutAfter, _)) => return self.cut().await,
            _ => {}
        }
        let answered = if *left == 0 { self.asked.pop_front() } else { None };
        self.pass(bytes, answered.map(|asked| asked.name).as_deref()).await
    }

    /// Deals with what is not the server's to answer, as far as that is next.
    async fn ours(&mut self) -> io::Result<Option<oneshot::Sender<()>>> {
        while self.asked.front().is_some_and(Asked::is_ours)
            && let Some(asked) = self.asked.pop_front()
        {
            sleep_until(asked.due).await;
            match asked.reply {
                Reply::Servers { .. } => {}
                Reply::Error(line) => {
                    self.pass(format!("-{line}\r\n").as_bytes(), Some(&asked.name)).await?;
                }
                Reply::End => self.cut().await?,
                Reply::Silence(silence) => return Ok(Some(silence)),
            }
        }
        Ok(None)
    }

    /// Writes to the client, unless that has become useless; with these bytes `command` is answered.
    async fn pass(&mut self, bytes: &[u8], command: Option<&str>) -> io::Result<()> {
        self.holed |= self.controls.flow(|now| now.replies).await == Flow::Swallow;
        if self.holed {
            return Ok(());
        }
        // Counted first: the process that has the reply finds it counted.
        if let Some(command) = command {
            locked(&self.controls.script).answered(command);
        }
        self.to.write_all(bytes).await
    }

    /// The server's end passes like its bytes, behind them.
    async fn end(&mut self) -> io::Result<()> {
        self.controls.flow(|now| now.replies).await;
        self.to.shutdown().await
    }

    async fn cut(&mut self) -> io::Result<()> {
        self.controls.flow(|now| now.replies).await;
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}
