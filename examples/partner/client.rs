//! The client: calls the partner with or without a permit.

use std::io;
use std::net::SocketAddr;

use lockattr::distributed_lock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::fleet::Anything;

/// The number of concurrent calls that the partner accepts.
pub(crate) const AT_ONCE: u32 = 3;
const CALLS: usize = 8;

#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error(transparent)]
    Lock(#[from] lockattr::Error),
    #[error(transparent)]
    Partner(#[from] io::Error),
}

/// Calls the partner with one of the fleet's three permits. The permit stays held for a tenth of a
/// second even if the answer comes sooner, which also limits the rate: at most thirty calls in a
/// second.
///
/// All callers of the same key have to state the same number of permits.
#[distributed_lock(key = "partner", permits = AT_ONCE, hold_at_least = "100ms", wait = "30s")]
async fn call_with_permit(partner: SocketAddr, request: &str) -> Result<String, CallError> {
    Ok(call(partner, request).await?)
}

async fn call(partner: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(partner).await?;
    stream.write_all(format!("{request}\n").as_bytes()).await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    Ok(reply)
}

/// One node, which asks all its questions at once, as the requests of its users would.
pub(crate) async fn node(name: &str, partner: SocketAddr, limited: bool) -> Result<(), Anything> {
    let mut calls = JoinSet::new();
    for nth in 0..CALLS {
        let request = format!("{name} makes its {nth}th call");
        calls.spawn(async move {
            match limited {
                true => call_with_permit(partner, &request).await,
                false => Ok(call(partner, &request).await?),
            }
        });
    }
    while let Some(reply) = calls.join_next().await {
        reply??;
    }
    Ok(())
}
