//! The sessions of a store: a few that many claims share, and those made for one claim that had to
//! wait. By runtime, because a connection dies with the runtime that made it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::{pending, ready};
use tokio::runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Inner;
use super::places::Waits;
use super::session::Session;
use crate::Error;
use crate::engines::sql::read_max_sessions;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::StoreError;
use crate::store::slots::{Attempt, Slots, current_runtime, unless_panics};

/// A runtime, and the number of one of its connections.
type SlotKey = (runtime::Id, usize);

/// The right to use one session that is made for one claim.
pub(super) type Place = OwnedSemaphorePermit;

/// Five processes with as many sessions, and two shared ones each, fit in a server with PostgreSQL's
/// default of 100 connections.
pub(super) const DEFAULT_MAX_SESSIONS: usize = 16;

/// Takes the setting `max_sessions` out of a URL's query, or returns its default.
pub(super) fn take_max_sessions(query: &mut Vec<(String, String)>) -> Result<usize, Error> {
    let Some(at) = query.iter().position(|(name, _)| name == "max_sessions") else {
        return Ok(DEFAULT_MAX_SESSIONS);
    };
    read_max_sessions(&query.remove(at).1)
}

/// The sessions of one store.
pub(super) struct Sessions {
    shared: Slots<SlotKey, Arc<Session>>,
    /// Idle sessions of those made for one claim.
    idle: Mutex<Vec<Arc<Session>>>,
    most_idle: usize,
    /// A place for each session that was made for one claim and is in use.
    places: Arc<Semaphore>,
    max_sessions: usize,
    /// How many claims wait for a place.
    waiting: Arc<AtomicUsize>,
}

impl Sessions {
    pub(super) fn new(most_idle: usize, max_sessions: usize) -> Self {
        let places = Arc::new(Semaphore::new(max_sessions));
        let (shared, idle, waiting) = Default::default();
        Self { shared, idle, most_idle, places, max_sessions, waiting }
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

    /// Returns a place, if one is free.
    pub(super) fn free_place(&self) -> Option<Place> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// Returns a place for which a session of this runtime is idle, if one is free.
    pub(super) fn place_of_idle(&self) -> Option<Place> {
        let runtime = current_runtime().ok()?.id();
        let is_there =
            lock(&self.idle).iter().any(|it| it.runtime.id() == runtime && !it.is_over());
        is_there.then(|| self.free_place()).flatten()
    }

    /// Waits for a place, behind all calls before.
    pub(super) fn place(&self) -> Waits {
        let (places, waiting) = (self.places.clone(), self.waiting.clone());
        let mut waits: Waits = Box::pin(async move {
            let _counted = Counted::new(&waiting);
            match places.acquire_owned().await {
                Ok(place) => place,
                // The semaphore is never closed.
                Err(_closed) => pending().await,
            }
        });
        match waits.as_mut().now_or_never() {
            Some(place) => Box::pin(ready(place)),
            None => waits,
        }
    }

    /// How many claims wait for a place.
    pub(super) fn waiting_for_places(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns a session for one claim, which has `place` until it is idle or ends.
    pub(super) async fn own(
        &self,
        inner: &Arc<Inner>,
        place: Place,
    ) -> Result<Arc<Session>, StoreError> {
        let runtime = current_runtime()?.id();
        let idle = {
            let mut idle = lock(&self.idle);
            idle.retain(|session| !session.is_over());
            let fits = idle.iter().rposition(|session| session.runtime.id() == runtime);
            let fits = fits.map(|index| idle.swap_remove(index));
            // Another runtime's idle session must not be one too many.
            let used = self.max_sessions.saturating_sub(self.places.available_permits());
            let too_many = (used + idle.len()).saturating_sub(self.max_sessions);
            if fits.is_none() {
                let few = idle.len().saturating_sub(too_many);
                idle.drain(few..).for_each(|session| session.close());
            }
            fits
        };
        let session = match idle {
            Some(session) => session,
            None => Session::open(inner, true).await?,
        };
        *session.place.lock() = Some(place);
        Ok(session)
    }

    /// Keeps an idle session that was made for one claim for the next, unless there are enough.
    pub(super) fn recycle(&self, session: &Arc<Session>) {
        if !session.own || session.is_over() {
            return;
        }
        let mut idle = lock(&self.idle);
        let of_runtime =
            idle.iter().filter(|other| other.runtime.id() == session.runtime.id()).count();
        if of_runtime < self.most_idle.max(self.waiting_for_places()) {
            idle.push(session.clone());
            drop(idle);
            // The next claim finds the session idle.
            drop(session.place.lock().take());
        }
    }
}

/// Counts itself while it exists.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Connects, for all callers that wait for it.
async fn connect(inner: Arc<Inner>, key: SlotKey, attempt: Attempt<Arc<Session>>) {
    let opened = unless_panics(Session::open(&inner, false)).await;
    inner.sessions.shared.settle(key, attempt.id, &opened);
    attempt.finish(opened);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic can leave this half-changed, so a poisoned mutex is safe to use.
    mutex.lock()
}
