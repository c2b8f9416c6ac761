//! How long a request waits for its reply.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::last_reply::LastReply;

/// Returns the reply, or `None` if the connection is silent: it has carried no reply at all for
/// `limit`, since this request was sent. As long as other replies arrive, the servers work, and
/// this request is behind others.
pub(crate) async fn unless_silent<T>(
    last_reply: &LastReply,
    limit: Duration,
    request: impl Future<Output = T>,
) -> Option<T> {
    let sent_at = Instant::now();
    let (mut request, mut until) = (pin!(request), sent_at + limit);
    loop {
        if let Ok(reply) = timeout_at(until, request.as_mut()).await {
            return Some(reply);
        }
        until = last_reply.after(sent_at)? + limit;
        if until <= Instant::now() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    /// Red without: the second look at the last reply.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_answers_others_is_not_silent() {
        let (last_reply, began) = (LastReply::new(), Instant::now());
        let others = async {
            for _ in 0..10 {
                sleep(LIMIT / 2).await;
                last_reply.record();
            }
            pending::<()>().await;
        };
        let slow = unless_silent(&last_reply, LIMIT, sleep(LIMIT * 4));
        let lost = unless_silent(&last_reply, LIMIT, pending::<()>());
        let both = async { tokio::join!(slow, lost) };
        let (slow, lost) = tokio::select! {
            both = both => both,
            () = others => unreachable!("it has no end"),
        };
        assert_eq!((slow, lost), (Some(()), None));
        assert_eq!(began.elapsed().as_secs(), 6, "a second after the last reply");
    }
}
