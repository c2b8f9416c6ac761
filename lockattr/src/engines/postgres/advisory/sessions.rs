//! The sessions of a store: a few that many claims share, and those that were made for one that had
//! to wait. By runtime, because a connection dies with the one that made it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime;

use super::Inner;
use super::session::Session;
use crate::store::StoreError;
use crate::store::slots::{Attempt, Slots, current_runtime};

/// A runtime, and the number of one of its connections.
type Place = (runtime::Id, usize);

/// The sessions of one store.
pub(super) struct Sessions {
    shared: Slots<Place, Arc<Session>>,
    /// Of those for one claim: the ones that have nothing to do.
    idle: Mutex<Vec<Arc<Session>>>,
    most_idle: usize,
}

impl Sessions {
    pub(super) fn new(most_idle: usize) -> Self {
        Self { shared: Slots::default(), idle: Mutex::default(), most_idle }
    }

    /// The shared session in this place.
    pub(super) async fn shared(
        &self,
        inner: &Arc<Inner>,
        place: usize,
    ) -> Result<Arc<Session>, StoreError> {
        let place = (current_runtime()?.id(), place);
        match self.shared.live(place) {
            Some((_, session)) if !session.is_over() => return Ok(session),
            Some((over, _)) => drop(self.shared.forget(over)),
            None => {}
        }
        let connect = |attempt| {
            tokio::spawn(connect(inner.clone(), place, attempt));
        };
        self.shared.get(place, connect).await
    }

    /// A session for one claim.
    pub(super) async fn own(&self, inner: &Arc<Inner>) -> Result<Arc<Session>, StoreError> {
        let runtime = current_runtime()?.id();
        let idle = {
            let mut idle = lock(&self.idle);
            idle.retain(|session| !session.is_over());
            let fits = idle.iter().rposition(|session| session.runtime == runtime);
            fits.map(|place| idle.swap_remove(place))
        };
        match idle {
            Some(session) => Ok(session),
            None => Session::open(inner, true).await,
        }
    }

    /// It has nothing to do any more, if it was made for one claim: kept for the next, if there are
    /// not enough of them.
    pub(super) fn recycle(&self, session: &Arc<Session>) {
        let mut idle = lock(&self.idle);
        let of_it = idle.iter().filter(|other| other.runtime == session.runtime).count();
        if session.own && !session.is_over() && of_it < self.most_idle {
            idle.push(session.clone());
        }
    }
}

/// Connects, for all callers that wait for it.
async fn connect(inner: Arc<Inner>, place: Place, attempt: Attempt<Arc<Session>>) {
    let opened = Session::open(&inner, false).await;
    inner.sessions.shared.settle(place, attempt.id, &opened);
    attempt.finish(opened);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in there can panic half-way, so a poisoned lock is still good.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
