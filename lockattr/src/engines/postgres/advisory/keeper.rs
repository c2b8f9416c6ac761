//! The task of a session: releases expired locks, and checks that the server still answers.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::Inner;
use super::session::Session;

/// How long the task of a connection has to close it. Longer than it waits for a thread that is not
/// blocked.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Keeps a session while it exists. Boxed, because it may open another one, which is kept too.
pub(super) fn keep(session: Weak<Session>, inner: Weak<Inner>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        if let Some(closed) = until_over(session, &inner).await {
            closed.end(&inner).await;
        }
    })
}

/// Returns the session if it was closed. Holds neither the session nor its store while it sleeps.
async fn until_over(session: Weak<Session>, inner: &Weak<Inner>) -> Option<Closed> {
    let mut beat = Instant::now();
    loop {
        let until = {
            let (session, inner) = (session.upgrade()?, inner.upgrade()?);
            if session.is_over() {
                return session.is_closed().then(|| Closed::new(&session));
            }
            let now = Instant::now();
            let (over, next) = inner.claims.leave_expired(session.id, now);
            if !over.is_empty() {
                // If one fails, the session is closed, and the lock ends with it.
                join_all(over.iter().map(|claim| inner.give_back(&session, claim))).await;
                inner.sessions.recycle(&session);
            }
            if now >= beat {
                beat = now + inner.config.timing.heartbeat;
                let silent = !session.answered.swap(false, Ordering::Relaxed);
                if silent && !session.is_waiting.load(Ordering::Acquire) {
                    let _left = session.run("").await;
                }
            }
            // `wake_keeper` announces later entries.
            *session.next.lock() = next;
            next.map_or(beat, |next| next.min(beat))
        };
        let wake_keeper = session.upgrade()?.wake_keeper.clone();
        let _earlier = timeout_at(until, wake_keeper.notified()).await;
    }
}

/// A session whose connection is about to be closed.
struct Closed {
    driver: AbortHandle,
    ending: String,
}

impl Closed {
    fn new(session: &Session) -> Self {
        Self { driver: session.driver.clone(), ending: session.ending() }
    }

    /// Ends it at the server, if its connection stays open. A thread that was blocked right after a
    /// request keeps the task of the connection, and no other takes that over
    /// ([tokio 4730](https://github.com/tokio-rs/tokio/issues/4730)). The server would keep the locks.
    async fn end(&self, inner: &Weak<Inner>) {
        sleep(CLOSE_LIMIT).await;
        while !self.driver.is_finished() {
            let Some(inner) = inner.upgrade() else { return };
            if let Ok(other) = inner.sessions.shared(&inner, 0).await
                && other.run(&self.ending).await.is_ok()
            {
                return;
            }
            drop(inner);
            sleep(CLOSE_LIMIT).await;
        }
    }
}
