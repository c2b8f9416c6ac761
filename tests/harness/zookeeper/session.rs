//! Closes another client's session, with a small part of the protocol that no client library
//! offers.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The constant from which servers derive a session's password.
const SECRET: u64 = 0xB341_5C00;

const CLOSE_SESSION: i32 = -11;

/// Takes a session over by its id and closes it, repeatedly until it is gone. The takeover
/// disconnects its client, which may reconnect first. Then the server refuses the close, because
/// the session has moved.
pub(super) async fn end(addr: &str, session: u64) -> io::Result<()> {
    while let Some(mut taken) = take_over(addr, session).await? {
        let close = [1_i32.to_be_bytes(), CLOSE_SESSION.to_be_bytes()].concat();
        send(&mut taken, &close).await?;
        // The server closes the connection after the session.
        let mut rest = Vec::new();
        taken.read_to_end(&mut rest).await?;
    }
    Ok(())
}

/// Opens a connection of this session, or returns `None` if the session is gone.
async fn take_over(addr: &str, session: u64) -> io::Result<Option<TcpStream>> {
    let mut stream = TcpStream::connect(addr).await?;
    let mut connect = Vec::new();
    connect.extend(0_i32.to_be_bytes()); // the protocol's version
    connect.extend(0_i64.to_be_bytes()); // the last change seen
    connect.extend(4_000_i32.to_be_bytes()); // the timeout
    connect.extend(session.to_be_bytes());
    connect.extend(16_i32.to_be_bytes());
    connect.extend(password(session));
    connect.push(0); // not for reading only
    send(&mut stream, &connect).await?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let mut reply = vec![0; usize::try_from(i32::from_be_bytes(length)).expect("a length")];
    stream.read_exact(&mut reply).await?;
    Ok((reply[8..16] == session.to_be_bytes()).then_some(stream))
}

async fn send(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = i32::try_from(message.len()).expect("short");
    stream.write_all(&[&length.to_be_bytes()[..], message].concat()).await
}

/// Returns sixteen bytes of `java.util.Random`, seeded with the session id.
fn password(session: u64) -> [u8; 16] {
    const FACTOR: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = ((session ^ SECRET) ^ FACTOR) & MASK;
    let mut password = [0; 16];
    for four in password.chunks_mut(4) {
        state = (state.wrapping_mul(FACTOR) + 0xB) & MASK;
        let bits = (state >> 16) as u32;
        four.copy_from_slice(&bits.to_le_bytes());
    }
    password
}
