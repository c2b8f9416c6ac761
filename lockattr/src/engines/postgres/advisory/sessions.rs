//! The sessions of a store: a few that many claims share, and those made for one claim that had to
//! wait. By runtime, because a connection dies with the runtime that made it.

use std::sync::Arc;

use tokio::runtime;

use super::Inner;
use super::session::Session;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::StoreError;
use crate::store::slots::{Attempt, Slots, current_runtime};

/// A runtime, and the number of one of its connections.
type SlotKey = (runtime::Id, usize);

/// The sessions of one store.
pub(super) struct Sessions {
    shared: Slots<SlotKey, Arc<Session>>,
    /// Idle sessions of those made for one claim.
    idle: Mutex<Vec<Arc<Session>>>,
    most_idle: usize,
}

impl Sessions {
    pub(super) fn new(most_idle: usize) -> Self {
        Self { shared: Slots::default(), idle: Mutex::default(), most_idle }
    }

    /// Returns the shared session in this place.
    pub(super) async fn shared(
        &self,
        inner: &Arc<Inner>,
        connection: usize,
    ) -> Result<Arc<Session>, StoreError> {
        let key = (current_runtime()?.id(), connection);
        match self.shared.live(key) {
            Some((_, session)) if !session.is_over() => return Ok(session),
            Some((over, _)) => drop(self.shared.forget(over)),
            None => {}
        }
        let connect = |attempt| {
            tokio::spawn(connect(inner.clone(), key, attempt));
        };
        self.shared.get(key, connect).await
    }

    /// Returns a session for one claim.
    pub(super) async fn own(&self, inner: &Arc<Inner>) -> Result<Arc<Session>, StoreError> {
        let runtime = current_runtime()?.id();
        let idle = {
            let mut idle = lock(&self.idle);
            idle.retain(|session| !session.is_over());
            let fits = idle.iter().rposition(|session| session.runtime == runtime);
            fits.map(|index| idle.swap_remove(index))
        };
        match idle {
            Some(session) => Ok(session),
            None => Session::open(inner, true).await,
        }
    }

    /// Keeps an idle session that was made for one claim for the next, unless there are enough.
    pub(super) fn recycle(&self, session: &Arc<Session>) {
        let mut idle = lock(&self.idle);
        let of_runtime = idle.iter().filter(|other| other.runtime == session.runtime).count();
        if session.own && !session.is_over() && of_runtime < self.most_idle {
            idle.push(session.clone());
        }
    }
}

/// Connects, for all callers that wait for it.
async fn connect(inner: Arc<Inner>, key: SlotKey, attempt: Attempt<Arc<Session>>) {
    let opened = Session::open(&inner, false).await;
    inner.sessions.shared.settle(key, attempt.id, &opened);
    attempt.finish(opened);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic can leave this half-changed, so a poisoned mutex is safe to use.
    mutex.lock()
}
