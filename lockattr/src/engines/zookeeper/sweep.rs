//! Removes the nodes of locks that are no longer used.

use std::sync::{Arc, Weak};

use tokio::time::{Instant, sleep_until};

use super::entries::Zookeeper;
use super::parents::Removal;
use super::session::Sessions;
use crate::store::LockKey;

/// How many are removed at once: few, because no caller waits for it.
const MAX_AT_ONCE: usize = 16;

impl Zookeeper {
    /// Returns the nodes of these locks that are to be removed with their entries. The others are
    /// removed later, unless the lock is used again.
    pub(super) fn parents_to_remove(&self, keys: &[LockKey]) -> Vec<String> {
        let (parents, now) = (&self.sessions.parents, Instant::now());
        let mut paths: Vec<_> = keys.iter().map(|key| self.path(key)).collect();
        paths.retain(|path| parents.left(path, now) == Removal::Now);
        if parents.needs_sweeper() {
            // Without it, the servers remove them.
            if let Ok(runtime) = self.sessions.thread.handle() {
                runtime.spawn(sweep(Arc::downgrade(&self.sessions)));
            }
        }
        paths
    }
}

/// Removes nodes in time until there are none. Keeps no store alive.
async fn sweep(sessions: Weak<Sessions>) {
    loop {
        let Some(strong) = sessions.upgrade() else { return };
        let (due, next) = strong.parents.due(Instant::now());
        for paths in due.chunks(MAX_AT_ONCE) {
            // What is left now, the servers remove.
            let Ok(session) = strong.get().await else { break };
            let deleted: Vec<_> =
                paths.iter().map(|path| session.client.delete(path, None)).collect();
            if strong.send_all(&session, deleted).await.is_err() {
                break;
            }
        }
        drop(strong);
        match next {
            Some(next) => sleep_until(next).await,
            None if due.is_empty() => return,
            None => {}
        }
    }
}
