//! Admits only the store's own client to its relay.
//!
//! The relay listens on the loopback interface, to which every process of the machine can connect.
//! So the client authenticates to the relay with a secret: the first of the packets by which it
//! would authenticate to the servers. The relay takes this packet out, and answers it.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zookeeper_client::Connector;

/// The scheme of the client's first authentication. No server sees it.
const SCHEME: &str = "lockattr-relay";

/// The operation code of an authentication.
const AUTH: i32 = 100;

/// A connect request and its reply have about forty bytes.
const MAX_PACKET_BYTES: usize = 1024;

/// What the client of one store proves itself with.
pub(super) struct Secret(String);

/// A connection of the store's own client, whose connect request was read.
pub(super) struct Admitted {
    connect_request: Vec<u8>,
    /// The number of the client's first authentication, which its reply repeats.
    xid: [u8; 4],
}

impl Secret {
    pub(super) fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    /// Adds the secret to a connector that does not authenticate yet.
    pub(super) fn added_to(&self, connector: Connector) -> Connector {
        connector.with_auth(SCHEME, self.0.as_bytes())
    }

    /// Reads the first two packets of a client. Fails if it does not know the secret.
    pub(super) async fn admit(
        &self,
        client: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Admitted> {
        let connect_request = packet(client).await?;
        let authentication = packet(client).await?;
        let stranger = || io::Error::from(io::ErrorKind::PermissionDenied);
        let (xid, rest) = authentication.split_first_chunk::<4>().ok_or_else(stranger)?;
        let expected = self.authentication();
        let differs = rest.iter().zip(&expected).fold(0, |differs, (one, other)| {
            // All of it is compared, so the time says nothing about the secret.
            differs | (one ^ other)
        });
        if rest.len() != expected.len() || differs != 0 {
            return Err(stranger());
        }
        Ok(Admitted { connect_request, xid: *xid })
    }

    /// The bytes that the client of this store sends first.
    #[cfg(test)]
    pub(super) fn first_bytes(&self) -> Vec<u8> {
        let authentication = [&7_i32.to_be_bytes()[..], &self.authentication()].concat();
        [prefixed(b"connect"), prefixed(&authentication), b"more".to_vec()].concat()
    }

    /// The client's first authentication, from its operation code on.
    fn authentication(&self) -> Vec<u8> {
        let mut packet = AUTH.to_be_bytes().to_vec();
        // The type, which is always zero.
        packet.extend(0_i32.to_be_bytes());
        packet.extend(prefixed(SCHEME.as_bytes()));
        packet.extend(prefixed(self.0.as_bytes()));
        packet
    }
}

impl Admitted {
    /// Opens the client's session at the server, and answers its first authentication.
    pub(super) async fn open(
        self,
        client: &mut (impl AsyncWrite + Unpin),
        server: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let asked = server.write_all(&prefixed(&self.connect_request)).await;
        let asked = asked.and(server.flush().await);
        // A server that refuses the client's certificate reports it and closes the connection. The
        // write may fail then, and the reason can be read all the same.
        let reply = packet(server).await?;
        asked?;
        // Its number, no transaction, and no error.
        let mut answer = self.xid.to_vec();
        answer.extend([0; 8 + 4]);
        client.write_all(&[prefixed(&reply), prefixed(&answer)].concat()).await
    }
}

/// Reads one packet, without the length before it.
async fn packet(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await?;
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_PACKET_BYTES);
    let length = length.ok_or(io::ErrorKind::InvalidData)?;
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet).await?;
    Ok(packet)
}

/// Returns the bytes after their length, as the protocol writes packets and their fields.
fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[..], bytes].concat()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[tokio::test]
    async fn the_own_client_is_admitted_and_its_first_authentication_is_answered() {
        let secret = Secret::random();
        let bytes = secret.first_bytes();
        let mut client = &bytes[..];
        let admitted = secret.admit(&mut client).await.expect("it knows the secret");
        assert_eq!(client, b"more");
        let replies = prefixed(b"reply");
        let mut server = tokio::io::join(&replies[..], Cursor::new(Vec::new()));
        let mut answers = Vec::new();
        admitted.open(&mut answers, &mut server).await.expect("the server replies");
        let answer = [&7_i32.to_be_bytes()[..], &[0; 12]].concat();
        assert_eq!(answers, [prefixed(b"reply"), prefixed(&answer)].concat());
        assert_eq!(server.into_inner().1.into_inner(), prefixed(b"connect"));
    }

    #[tokio::test]
    async fn a_stranger_is_turned_away() {
        let (secret, other) = (Secret::random(), Secret::random());
        let mut long = secret.first_bytes();
        // The first packet seems to have a gigabyte.
        long[0] = 0x40;
        let own = secret.first_bytes();
        let cut = own[..own.len() - "more".len() - 1].to_vec();
        let short = [prefixed(b"connect"), prefixed(b"abc")].concat();
        for bytes in [other.first_bytes(), long, cut, short, Vec::new()] {
            assert!(secret.admit(&mut &bytes[..]).await.is_err());
        }
    }
}
