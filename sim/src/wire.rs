//! One connection of a process, as messages.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turmoil::net::TcpStream;

use crate::parcels::{Parcel, Parcels, Question};

/// The bytes of a connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    parcels: Parcels,
    last: u64,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, parcels: Parcels) -> Self {
        Self { stream, parcels, last: 0 }
    }

    pub(crate) async fn ask(&mut self, question: Question) -> std::io::Result<u64> {
        self.last += 1;
        let parcel = Parcel::Question(self.last, question);
        self.stream.write_all(&self.parcels.send(parcel)).await?;
        Ok(self.last)
    }

    /// Can be dropped at any time: a message is one segment, which comes as a whole.
    pub(crate) async fn hear(&mut self) -> std::io::Result<Parcel> {
        let mut bytes = [0; 8];
        match self.stream.read(&mut bytes).await? {
            8 => Ok(self.parcels.collect(bytes)),
            _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
