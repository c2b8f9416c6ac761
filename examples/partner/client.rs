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
const QUESTIONS: usize = 8;

#[derive(Debug, thiserror::Error)]
enum AskError {
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
async fn ask_in_turn(partner: SocketAddr, question: &str) -> Result<String, AskError> {
    Ok(ask(partner, question).await?)
}

async fn ask(partner: SocketAddr, question: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(partner).await?;
    stream.write_all(format!("{question}\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// One node, which asks all its questions at once, as the requests of its users would.
pub(crate) async fn node(name: &str, partner: SocketAddr, limited: bool) -> Result<(), Anything> {
    let mut questions = JoinSet::new();
    for number in 0..QUESTIONS {
        let question = format!("{name} asks for the {number}th time");
        questions.spawn(async move {
            match limited {
                true => ask_in_turn(partner, &question).await,
                false => Ok(ask(partner, &question).await?),
            }
        });
    }
    while let Some(answer) = questions.join_next().await {
        answer??;
    }
    Ok(())
}
