//! One connection of a process, as messages.

use crate::messages::{Message, Messages, Request};
use crate::network::Socket;

/// Sends and receives the messages of a connection.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: Socket,
    messages: Messages,
    last: u64,
}

impl Wire {
    pub(crate) fn new(socket: Socket, messages: Messages) -> Self {
        Self { socket, messages, last: 0 }
    }

    pub(crate) fn send(&mut self, request: Request) -> std::io::Result<u64> {
        self.last += 1;
        let message = Message::Request(self.last, request);
        self.socket.send(self.messages.send(message))?;
        Ok(self.last)
    }

    /// Cancel safe.
    pub(crate) async fn receive(&mut self) -> std::io::Result<Message> {
        Ok(self.messages.collect(self.socket.next().await?))
    }
}
