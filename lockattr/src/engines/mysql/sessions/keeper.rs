//! The task of a connection: checks that the server still answers, and that it lets the connection
//! live, and releases a lock whose lease has ended.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use tokio::time::{Instant, timeout};

use super::Sessions;
use super::session::{Session, Use};
use super::statements::let_idle;
use crate::engines::mysql::config::idle_seconds;

/// Holds neither the session nor its store while it sleeps.
pub(super) async fn keep(session: Weak<Session>, sessions: Weak<Sessions>) {
    // The session ends with the runtime, which drops this task.
    let kept = EndOnDrop { session, sessions };
    loop {
        let Some((session, sessions)) = kept.both() else { return };
        let heartbeat = sessions.config.timing.heartbeat;
        // A statement is under way: its caller learns how the connection is.
        let (idle, ends) = session.try_use().map_or((None, None), |using| {
            let ends = using.connection.held.as_ref().map(|held| held.ends);
            (Some(using.connection.idle), ends)
        });
        let woken = session.wake_keeper.clone();
        drop((session, sessions));
        let third = idle.map_or(heartbeat, |idle| Duration::from_secs(idle) / 3);
        let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        let pause = heartbeat.min(third).min(left.unwrap_or(heartbeat));
        if timeout(pause, woken.notified()).await.is_ok() {
            continue;
        }
        let Some((session, sessions)) = kept.both() else { return };
        if session.is_over() || sessions.pool.end_surplus(&session, sessions.most_idle()) {
            return;
        }
        let Some(mut using) = session.try_use() else { continue };
        if using.connection.held.as_ref().is_some_and(|held| held.ends <= Instant::now()) {
            // If it fails, the connection is closed, and the lock ends with it.
            sessions.release_now(using).await.ok();
            continue;
        }
        let answered = std::mem::take(&mut using.connection.answered);
        let must_ask = !answered || using.connection.held.is_none();
        if must_ask && !sessions.is_alive(&mut using).await {
            sessions.end(using);
            return;
        }
    }
}

impl Sessions {
    /// Whether the connection still works.
    async fn is_alive(&self, using: &mut Use) -> bool {
        let connection = &mut *using.connection;
        let Some(conn) = &mut connection.conn else { return false };
        connection.is_busy = true;
        // As long as a renewal, because the lock is lost with the connection.
        let response = self.config.timing.response_timeout;
        let limit = connection.held.as_ref().map_or(response, |held| held.ttl.max(response));
        let usual = idle_seconds(self.config.idle());
        let asked = async {
            if connection.held.is_some() {
                return conn.ping().await.map(|()| true);
            }
            if connection.idle != usual {
                // Without a lock it may be idle for longer.
                connection.idle = usual;
                let_idle(conn, usual).await?;
            }
            connection.numbers.are_valid(conn).await
        };
        let answered = matches!(timeout(limit, asked).await, Ok(Ok(true)));
        if answered {
            connection.is_busy = false;
        }
        answered
    }
}

struct EndOnDrop {
    session: Weak<Session>,
    sessions: Weak<Sessions>,
}

impl EndOnDrop {
    fn both(&self) -> Option<(Arc<Session>, Arc<Sessions>)> {
        Some((self.session.upgrade()?, self.sessions.upgrade()?))
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let Some(session) = self.session.upgrade() else { return };
        match (session.try_use(), self.sessions.upgrade()) {
            (Some(using), Some(sessions)) => sessions.end(using),
            _ => session.end(),
        }
    }
}
