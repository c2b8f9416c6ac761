//! The task that keeps a connection: it connects, and then regularly checks that the server
//! replies.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::ErrorKind;
use tokio::runtime;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::connection_slot::{ConnectionSlot, LiveConnection};
use super::sentinels::is_master;
use crate::store::heartbeat::Heartbeat;
use crate::store::slots::Attempt;

/// Whether sentinels have named another server as the master. Replies of this one no longer count.
#[derive(Default)]
pub(super) struct Demotion {
    known: AtomicBool,
    notify: Notify,
}

impl Demotion {
    fn notify(&self) {
        self.known.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Returns when the demotion is known: a request under way may get no reply for long.
    pub(super) async fn notified(&self) {
        let mut notified = pin!(self.notify.notified());
        // Subscribes before it reads the flag, so that no notification is missed in between.
        notified.as_mut().enable();
        if !self.is_known() {
            notified.await;
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }
}

/// Connects, returns the outcome to the callers that wait for it, and keeps the connection for as
/// long as the server replies.
pub(super) async fn run_connection(
    connection_slot: Arc<ConnectionSlot>,
    runtime: runtime::Id,
    attempt: Attempt<Arc<LiveConnection>>,
) {
    let task = HeartbeatTask {
        connection_slot: Arc::downgrade(&connection_slot),
        runtime,
        id: attempt.id,
    };
    let interval = connection_slot.config.timing.heartbeat;
    let outcome = connection_slot.connect(runtime, attempt.id).await;
    let connected = outcome.as_ref().ok().map(|live| {
        let sentinels = connection_slot.config.server.sentinels();
        let demoted = sentinels.map(|sentinels| sentinels.left(live.address.clone()));
        (live.heartbeat.clone(), live.demotion.clone(), demoted)
    });
    attempt.finish(outcome);
    drop(connection_slot);
    match connected {
        Some((heartbeat, demotion, Some(demoted))) => tokio::select! {
            () = task.until_silent(&heartbeat, interval) => {}
            () = demoted => demotion.notify(),
        },
        Some((heartbeat, _, None)) => task.until_silent(&heartbeat, interval).await,
        None => {}
    }
}

/// Holds neither the connection nor its slot while it sleeps, so both close with their store.
struct HeartbeatTask {
    connection_slot: Weak<ConnectionSlot>,
    runtime: runtime::Id,
    id: u64,
}

impl HeartbeatTask {
    async fn until_silent(&self, heartbeat: &Heartbeat, interval: Duration) {
        loop {
            let must_ping = heartbeat.must_ping(interval).await;
            // A proxy may have put another server behind this connection.
            if let Some(live) = self
                .connection_slot
                .upgrade()
                .and_then(|connection_slot| connection_slot.live_with(self.id))
            {
                live.raised.clear();
            }
            if must_ping && !self.is_responsive().await {
                return;
            }
            if !self.renew_login().await {
                return;
            }
            // The server may have refused some subscriptions.
            if let Some(connection_slot) = self.connection_slot.upgrade() {
                connection_slot.subscribe_all(self.id).await;
            }
        }
    }

    /// Returns whether the connection is still in use and the server replies, be it with an error.
    /// If sentinels name the master, the server must also report that it is one.
    async fn is_responsive(&self) -> bool {
        let Some(connection_slot) = self.connection_slot.upgrade() else { return false };
        let Some(live) = connection_slot.live_with(self.id) else { return false };
        let found = connection_slot.config.server.sentinels().is_some();
        drop(connection_slot);
        let serves = match found {
            true => is_master(&mut live.connection()).await,
            // Any other reply is that of another request.
            false => {
                let pong = redis::cmd("PING").query_async(&mut live.connection()).await;
                pong.and_then(|pong: String| match &*pong {
                    "PONG" => Ok(true),
                    _ => Err((ErrorKind::UnexpectedReturnType, "no reply to PING").into()),
                })
            }
        };
        match serves {
            Ok(serves) => serves,
            Err(error) if error.kind() == ErrorKind::UnexpectedReturnType => {
                drop(live.distrusted());
                false
            }
            Err(error) => !error.is_timeout() && !error.is_unrecoverable_error(),
        }
    }
}

impl HeartbeatTask {
    /// Has the connection replaced by one with a new login, if the provider's answer has changed.
    /// Returns whether the connection remains in use.
    ///
    /// A new login that the server refuses costs no connection: the provider may know a password
    /// before its server does. It is tried over a connection of its own. Redis 8.6 sends no reply to
    /// an `AUTH` that it refuses among other commands, and each later reply would then be taken for
    /// that of another command.
    async fn renew_login(&self) -> bool {
        // Not the slot's own: it must not live for as long as a provider takes.
        let config_of = |connection_slot: Arc<ConnectionSlot>| connection_slot.config.clone();
        let Some(config) = self.connection_slot.upgrade().map(config_of) else { return true };
        let limit = config.timing.connect_timeout;
        let credentials = match config.credentials().await {
            Ok(Some(credentials)) => credentials,
            Ok(None) => return true,
            Err(error) => {
                tracing::warn!(%error, "the login of a connection is not renewed");
                return true;
            }
        };
        let Some(connection_slot) = self.connection_slot.upgrade() else { return false };
        let Some(live) = connection_slot.live_with(self.id) else { return false };
        if live.login.has(&credentials) {
            return true;
        }
        match timeout(limit, connection_slot.check_login(&credentials)).await {
            Ok(Ok(())) => {
                // The replacement must not depend on another answer of the provider.
                connection_slot.verified.put(self.runtime, credentials);
                false
            }
            Ok(Err(error)) => {
                tracing::warn!(error.message = %error, "the server refused the new login of a connection");
                true
            }
            Err(_) => true,
        }
    }
}

impl Drop for HeartbeatTask {
    /// A connection without this task is not used, even if a runtime ends and drops both.
    fn drop(&mut self) {
        if let Some(connection_slot) = self.connection_slot.upgrade() {
            connection_slot.forget(self.id);
        }
    }
}
