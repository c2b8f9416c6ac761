//! The sessions of a store: a few that many claims share, and those that were made for one that had
//! to wait. By runtime, because a connection dies with the one that made it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Inner;
use super::session::Session;
use crate::store::StoreError;

/// How long a failure to connect is told to those who ask next, before it is tried again.
const FAILURE_CACHED_FOR: Duration = Duration::from_millis(50);

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
struct Slot(Mutex<SlotState>);

/// How it stands with it.
#[derive(Default)]
enum SlotState {
    #[default]
    Empty,
    /// Made by a task of its own, so that a caller without patience does not end it for the others.
    Connecting(Shared<oneshot::Receiver<Opened>>),
    LiveConnection(Arc<Session>),
    Failed(Instant, StoreError),
}

type Opened = Result<Arc<Session>, StoreError>;

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
        let attempt = {
            let mut place = lock(&slot.0);
            match &*place {
                SlotState::LiveConnection(live) if !live.is_over() => return Ok(live.clone()),
                SlotState::Failed(at, error) if at.elapsed() < FAILURE_CACHED_FOR => {
                    return Err(error.clone());
                }
                SlotState::Connecting(attempt) => attempt.clone(),
                _ => {
                    let (told, attempt) = oneshot::channel();
                    let attempt = attempt.shared();
                    *place = SlotState::Connecting(attempt.clone());
                    tokio::spawn(connect(inner.clone(), slot.clone(), told));
                    attempt
                }
            }
        };
        attempt.await.unwrap_or_else(|_| {
            Err(StoreError::new("the runtime that connected to it has ended").not_sent())
        })
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
    pub(super) fn recycle(&self, session: &Arc<Session>) {
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
        shared.retain(|(_, _, slot)| Arc::strong_count(slot) > 1 || slot.is_live());
        let slot = Arc::<Slot>::default();
        shared.push((runtime, place, slot.clone()));
        slot
    }
}

impl Slot {
    fn is_live(&self) -> bool {
        matches!(&*lock(&self.0), SlotState::LiveConnection(session) if !session.is_over())
    }
}

/// Connects, for all who asked meanwhile.
async fn connect(inner: Arc<Inner>, slot: Arc<Slot>, told: oneshot::Sender<Opened>) {
    let opened = Session::open(&inner, false).await;
    *lock(&slot.0) = match &opened {
        Ok(session) => SlotState::LiveConnection(session.clone()),
        Err(error) => SlotState::Failed(Instant::now(), error.clone()),
    };
    // If all of them have given up, the next one finds it.
    drop(told.send(opened));
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
