//! One connection of a process, as messages.

use crate::network::Socket;
use crate::parcels::{Parcel, Parcels, Question};

/// What goes over a connection.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: Socket,
    parcels: Parcels,
    last: u64,
}

impl Wire {
    pub(crate) fn new(socket: Socket, parcels: Parcels) -> Self {
        Self { socket, parcels, last: 0 }
    }

    pub(crate) fn ask(&mut self, question: Question) -> std::io::Result<u64> {
        self.last += 1;
        let parcel = Parcel::Question(self.last, question);
        self.socket.send(self.parcels.send(parcel))?;
        Ok(self.last)
    }

    /// Can be dropped at any time.
    pub(crate) async fn hear(&mut self) -> std::io::Result<Parcel> {
        Ok(self.parcels.collect(self.socket.next().await?))
    }
}
