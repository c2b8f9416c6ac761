//! Signs of life of a connection, and the question whether it still answers.
//!
//! Clients give up on requests that time out but keep their connection (redis-rs PR 1032), so that one whose
//! server vanished without a word would stay in use forever.

// The other engines need a part of it.
#![cfg_attr(not(feature = "redis"), allow(dead_code))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// What is known of one connection.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    replied: AtomicBool,
    suspected: Notify,
}

impl Heartbeat {
    /// The server has answered, or sent a notification.
    pub(crate) fn note_reply(&self) {
        self.replied.store(true, Ordering::Relaxed);
    }

    /// The server did not answer in time: the next heartbeat is now.
    pub(crate) fn suspect(&self) {
        self.suspected.notify_one();
    }

    /// Waits for the next heartbeat. Returns whether the server has to be asked if it is there: it is suspected,
    /// or has not replied since the last heartbeat.
    pub(crate) async fn must_ping(&self, interval: Duration) -> bool {
        let suspected = timeout(interval, self.suspected.notified()).await.is_ok();
        let replied = self.replied.swap(false, Ordering::Relaxed);
        suspected || !replied
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_is_asked_that_is_silent_for_an_interval_or_suspected() {
        let (heartbeat, interval, began) =
            (Heartbeat::default(), Duration::from_secs(5), Instant::now());
        assert!(heartbeat.must_ping(interval).await, "no reply yet");
        heartbeat.note_reply();
        assert!(!heartbeat.must_ping(interval).await);
        assert!(heartbeat.must_ping(interval).await, "one reply counts once");
        assert_eq!(began.elapsed(), 3 * interval);
        heartbeat.note_reply();
        heartbeat.suspect();
        assert!(heartbeat.must_ping(interval).await);
        assert_eq!(began.elapsed(), 3 * interval, "at once");
    }
}
