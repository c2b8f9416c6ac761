//! The task of a connection: makes it, and then checks that it still answers, and whether a sweep is
//! due.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime;
use tokio::time::{Instant, timeout};

use super::connection_slot::{ConnectionSlot, LiveConnection, Role};
use super::failure::failure_of;
use crate::engines::sql::sweep;
use crate::store::heartbeat::Heartbeat;
use crate::store::slots::Attempt;

/// Connects, returns the outcome to the callers that wait for it, and keeps the connection for as long as
/// the server answers.
pub(super) async fn run_connection<R: Role>(
    slot: Arc<ConnectionSlot<R>>,
    runtime: runtime::Id,
    attempt: Attempt<Arc<LiveConnection<R>>>,
) {
    let task = HeartbeatTask { slot: Arc::downgrade(&slot), id: attempt.id };
    let interval = slot.config.timing.heartbeat;
    let outcome = slot.connect(runtime, attempt.id).await;
    let signs = outcome.as_ref().ok().map(|live| live.signs.clone());
    attempt.finish(outcome);
    drop(slot);
    if let Some(signs) = signs {
        task.until_silent(&signs.heartbeat, interval).await;
    }
}

/// Keeps neither the connection nor its slot alive while it sleeps: both close with their store.
struct HeartbeatTask<R: Role> {
    slot: Weak<ConnectionSlot<R>>,
    id: u64,
}

impl<R: Role> HeartbeatTask<R> {
    async fn until_silent(&self, heartbeat: &Heartbeat, interval: Duration) {
        loop {
            let asked = Instant::now();
            let more = self.check().await;
            let pause = sweep::pause_after(more, asked, interval);
            if heartbeat.must_ping(pause).await && !self.is_responsive().await {
                return;
            }
        }
    }

    /// Returns whether a sweep has more rows to read.
    async fn check(&self) -> bool {
        let Some(slot) = self.slot.upgrade() else { return false };
        let Some(live) = slot.live_with(self.id) else { return false };
        let (address, limit) = (&slot.config.address, slot.config.timing.response_timeout);
        match timeout(limit, slot.role.check(&live.client, &live.session)).await {
            Ok(Ok(more)) => {
                if more {
                    live.signs.heartbeat.note_reply();
                }
                more
            }
            Ok(Err(error)) => {
                let failure = failure_of(address, error);
                if !failure.ends_connection && !failure.is_conflict {
                    slot.config.sweep_warning.warn_once(address, &failure.error);
                }
                false
            }
            // A silent server is found by the next heartbeat.
            Err(_) => false,
        }
    }

    /// Whether the connection is still in use and answers. An error is an answer too.
    async fn is_responsive(&self) -> bool {
        let Some(slot) = self.slot.upgrade() else { return false };
        let Some(live) = slot.live_with(self.id) else { return false };
        let limit = slot.config.timing.response_timeout;
        drop(slot);
        match timeout(limit, live.client.check_connection()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => error.as_db_error().is_some() && !live.client.is_closed(),
            Err(_) => false,
        }
    }
}

impl<R: Role> Drop for HeartbeatTask<R> {
    /// Stops using the connection, also when a runtime ends and takes both along.
    fn drop(&mut self) {
        if let Some(slot) = self.slot.upgrade() {
            slot.forget(self.id);
        }
    }
}
