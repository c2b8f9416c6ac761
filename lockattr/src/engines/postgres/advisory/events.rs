//! Events of the sessions, and their effects on claims.

use std::collections::HashMap;

use tokio::time::Instant;

use super::session::Session;
use super::{Inner, sql};
use crate::store::OwnerToken;

/// The server processes of this store's sessions: of open and of ended ones.
#[derive(Default)]
pub(super) struct Processes {
    open: HashMap<u64, (i32, String)>,
    left: Vec<(i32, String)>,
}

impl Inner {
    /// Handles the end of a session: the locks held there are lost.
    pub(super) fn lost(&self, session: u64) {
        {
            let mut processes = self.processes();
            let ended = processes.open.remove(&session);
            processes.left.extend(ended);
        }
        for claim in self.claims.lost(session) {
            if let Some(subscriber) = self.notifications.subscribers.get(claim.token().subscriber())
            {
                subscriber.lost(claim.token());
            }
        }
    }

    /// Server processes that may still hold locks without a connection. A new session ends them.
    pub(super) fn left(&self) -> Vec<(i32, String)> {
        std::mem::take(&mut self.processes().left)
    }

    /// The same, for a session that may never report its end.
    pub(super) fn leave(&self, session: &Session) {
        let mut processes = self.processes();
        let left = processes.open.remove(&session.id);
        processes.left.extend(left);
    }

    pub(super) fn opened(&self, session: &Session) {
        self.processes().open.insert(session.id, (session.pid, session.began.clone()));
    }

    pub(super) fn processes(&self) -> crate::platform::sync::MutexGuard<'_, Processes> {
        self.processes.lock()
    }

    /// Handles a notification that others wait for a lock of a session.
    pub(super) fn note_contended(&self, channel: &str, name: &str) {
        let pid = channel.strip_prefix(sql::CHANNEL).and_then(|pid| pid.parse().ok());
        if let Some((claim, _)) = pid.and_then(|pid| self.claims.holder(name, pid)) {
            self.contended(claim.token(), name);
        }
    }

    pub(super) fn contended(&self, token: OwnerToken, name: &str) {
        if let Some(subscriber) = self.notifications.subscribers.get(token.subscriber()) {
            subscriber.contended(name);
        }
    }

    pub(super) fn ask_again(&self, token: OwnerToken) {
        if let Some(subscriber) = self.notifications.subscribers.get(token.subscriber()) {
            subscriber.ask_again(token, Instant::now());
        }
    }
}
