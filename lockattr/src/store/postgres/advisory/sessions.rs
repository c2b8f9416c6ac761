//! The sessions of a store: a few that many claims share, and those that were made for one that had
//! to wait. By runtime, because a connection dies with the one that made it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::time::Instant;

use super::Inner;
use super::session::Session;
use crate::store::StoreError;

/// How long a failure to connect is told to those who ask next, before it is tried again.
const FAILURE_LASTS: Duration = Duration::from_millis(50);

/// The sessions of one store.
pub(super) struct Sessions {
    /// Few, so a hash of each would take longer than to look at all.
    shared: Mutex<Vec<(runtime::Id, usize, Arc<Slot>)>>,
    /// Of those for one claim: the ones that have nothing to do.
    idle: Mutex<Vec<Arc<Session>>>,
    most_idle: usize,
}

/// One place for a shared session.
#[derive(Default)]
struct Slot {
    live: Mutex<Option<Arc<Session>>>,
    /// Held by who connects; what the last one got instead of a session.
    connecting: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
}

impl Sessions {
    pub(super) fn new(most_idle: usize) -> Self {
        Self { shared: Mutex::default(), idle: Mutex::default(), most_idle }
    }

    /// The shared session in this place.
    pub(super) async fn shared(
        &self,
        inner: &Arc<Inner>,
        place: usize,
    ) -> Result<Arc<Session>, StoreError> {
        let slot = self.slot(runtime()?, place);
        if let Some(live) = slot.live() {
            return Ok(live);
        }
        let mut failed = slot.connecting.lock().await;
        if let Some(live) = slot.live() {
            return Ok(live);
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < FAILURE_LASTS
        {
            return Err(error.clone());
        }
        match Session::open(inner, false).await {
            Ok(session) => {
                *failed = None;
                *lock(&slot.live) = Some(session.clone());
                Ok(session)
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// A session for one claim.
    pub(super) async fn own(&self, inner: &Arc<Inner>) -> Result<Arc<Session>, StoreError> {
        let runtime = runtime()?;
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
    pub(super) fn put_back(&self, session: &Arc<Session>) {
        let mut idle = lock(&self.idle);
        let of_it = idle.iter().filter(|other| other.runtime == session.runtime).count();
        if session.own && !session.is_over() && of_it < self.most_idle {
            idle.push(session.clone());
        }
    }

    fn slot(&self, runtime: runtime::Id, place: usize) -> Arc<Slot> {
        let mut shared = lock(&self.shared);
        if let Some((_, _, slot)) = shared.iter().find(|it| (it.0, it.1) == (runtime, place)) {
            return slot.clone();
        }
        // Those of runtimes that have ended.
        shared.retain(|(_, _, slot)| Arc::strong_count(slot) > 1 || slot.live().is_some());
        let slot = Arc::<Slot>::default();
        shared.push((runtime, place, slot.clone()));
        slot
    }
}

impl Slot {
    fn live(&self) -> Option<Arc<Session>> {
        lock(&self.live).as_ref().filter(|session| !session.is_over()).cloned()
    }
}

fn runtime() -> Result<runtime::Id, StoreError> {
    let runtime = Handle::try_current()
        .map_err(|_| StoreError::new("it can only be asked inside a tokio runtime").not_sent())?;
    Ok(runtime.id())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in there can panic half-way, so a poisoned lock is still good.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
