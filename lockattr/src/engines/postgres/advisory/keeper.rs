//! The task of a session: releases expired locks, and checks that the server still answers.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};

use super::Inner;
use super::session::Session;

/// Holds neither the session nor its store while it sleeps.
pub(super) async fn keep(session: Weak<Session>, inner: Weak<Inner>) {
    let mut beat = Instant::now();
    loop {
        let until = {
            let (Some(session), Some(inner)) = (session.upgrade(), inner.upgrade()) else { return };
            if session.is_over() {
                return;
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
        let Some(wake_keeper) = session.upgrade().map(|session| session.wake_keeper.clone()) else {
            return;
        };
        let _earlier = timeout_at(until, wake_keeper.notified()).await;
    }
}
