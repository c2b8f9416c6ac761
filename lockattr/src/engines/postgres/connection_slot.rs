//! A connection that is always there: made when first needed, replaced when it fails or falls
//! silent.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, Connection, NoTls, Notification, Socket};

use super::config::Config;
use super::driver::{self, Driver};
use super::failure::{Failure, answered, connected, failure_of};
use super::heartbeat::{Heartbeat, run_connection};
use super::pooler;
use super::session;
use crate::store::StoreError;

/// How long a failure to connect is told to those who ask next, before it is tried again.
const FAILURE_CACHED_FOR: Duration = Duration::from_millis(50);

/// What a connection is for.
pub(super) trait Role: Send + Sync + 'static {
    /// What it is ready with.
    type Session: Clone + Send + Sync;

    /// Makes a new connection ready, in the place with this number.
    fn begin(
        &self,
        client: &Client,
        place: i64,
    ) -> impl Future<Output = Result<Self::Session, tokio_postgres::Error>> + Send;

    /// The server said something unasked.
    fn notified(&self, _notification: &Notification) {}

    /// The connection is gone.
    fn interrupted(&self) {}
}

/// One place in the pool.
pub(super) struct ConnectionSlot<R: Role> {
    pub(super) config: Config,
    pub(super) role: Arc<R>,
    /// By runtime, because a connection dies with the runtime that made it, and a manager may
    /// serve several. Few, so a hash of each would take longer than to look at all.
    slots: Mutex<Slots<R>>,
    last_id: AtomicU64,
    /// What its places are numbered by, one for each runtime: nobody else's.
    numbers: RandomState,
}

/// How it stands with one runtime's connection.
enum SlotState<R: Role> {
    /// Made by a task of its own, so that a caller without patience does not end it for the others.
    Connecting(u64, Shared<oneshot::Receiver<Outcome<R>>>),
    LiveConnection(LiveConnection<R>),
    Failed(Instant, StoreError),
}

/// What became of an attempt to connect.
pub(super) type Outcome<R> = Result<LiveConnection<R>, StoreError>;

/// A connection that is thought to work.
pub(super) struct LiveConnection<R: Role> {
    pub(super) client: Arc<Client>,
    pub(super) session: R::Session,
    pub(super) heartbeat: Arc<Heartbeat>,
    id: u64,
    /// The task that reads and writes for it.
    driver: AbortHandle,
}

impl<R: Role> Clone for LiveConnection<R> {
    fn clone(&self) -> Self {
        let Self { client, session, heartbeat, id, driver } = self;
        let (client, session, heartbeat) = (client.clone(), session.clone(), heartbeat.clone());
        Self { client, session, heartbeat, id: *id, driver: driver.clone() }
    }
}

impl<R: Role> ConnectionSlot<R> {
    pub(super) fn new(config: Config, role: Arc<R>) -> Arc<Self> {
        let (slots, last_id, numbers) = Default::default();
        Arc::new(Self { config, role, slots, last_id, numbers })
    }

    /// The connection, made now if there is none.
    pub(super) async fn get(self: &Arc<Self>) -> Outcome<R> {
        let runtime = Handle::try_current().map_err(|_| {
            StoreError::new("it can only be asked inside a tokio runtime").not_sent()
        })?;
        let mut replaced = None;
        let attempt = {
            let mut slots = self.slots();
            let slot = slots.iter().find(|(of, _)| *of == runtime.id());
            match slot.map(|(_, slot)| slot) {
                Some(SlotState::LiveConnection(live)) if !live.client.is_closed() => {
                    return Ok(live.clone());
                }
                Some(SlotState::Failed(at, error)) if at.elapsed() < FAILURE_CACHED_FOR => {
                    return Err(error.clone());
                }
                Some(SlotState::Connecting(_, attempt)) => attempt.clone(),
                _ => {
                    let id = self.last_id.fetch_add(1, Ordering::Relaxed);
                    let (sender, receiver) = oneshot::channel();
                    let attempt = receiver.shared();
                    let slot = SlotState::Connecting(id, attempt.clone());
                    replaced = replace_slot(&mut slots, runtime.id(), slot);
                    runtime.spawn(run_connection(self.clone(), runtime.id(), id, sender));
                    attempt
                }
            }
        };
        // Its own end finds it in its place no more, and tells nobody.
        if let Some(SlotState::LiveConnection(_)) = replaced {
            self.role.interrupted();
        }
        attempt.await.unwrap_or_else(|_| {
            Err(StoreError::new("the runtime that connected to it has ended").not_sent())
        })
    }

    /// The answer to what was asked on `live`, or why there is none that counts.
    pub(super) async fn answer<T>(
        &self,
        live: &LiveConnection<R>,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        let answer = answered(&self.config, asked).await;
        match &answer {
            Ok(_) => live.heartbeat.replied(),
            Err(failure) if failure.ends_connection => self.forget(live.id),
            Err(_) => {}
        }
        answer
    }

    /// Connects, in the place that `id` was given.
    pub(super) async fn connect(self: &Arc<Self>, runtime: runtime::Id, id: u64) -> Outcome<R> {
        let established = async {
            // In a time of its own, and only once in a while.
            pooler::refuse(&self.config).await?;
            // One limit for the whole of it: the client's own covers only parts.
            connected(&self.config, self.establish(runtime, id)).await
        };
        let outcome = established.await.map_err(StoreError::not_sent);
        let slot = match &outcome {
            Ok(live) => SlotState::LiveConnection(live.clone()),
            Err(error) => SlotState::Failed(Instant::now(), error.clone()),
        };
        let in_place = settle(&mut self.slots(), runtime, id, slot);
        // It may have ended before it was in its place, which may be another's by now.
        if let Ok(live) = &outcome
            && (!in_place || live.client.is_closed())
        {
            live.driver.abort();
            self.forget(id);
            let address = &self.config.address;
            let sentence = format!("the connection to {address} ended while it was made");
            return Err(StoreError::new(sentence).not_sent());
        }
        outcome
    }

    async fn establish(self: &Arc<Self>, runtime: runtime::Id, id: u64) -> Outcome<R> {
        let failed = |error| failure_of(&self.config.address, error).error;
        let (client, connection) = self.config.server.connect(NoTls).await.map_err(failed)?;
        let heartbeat = Arc::<Heartbeat>::default();
        let driving =
            drive(connection, Arc::downgrade(self), self.role.clone(), heartbeat.clone(), id);
        let driver = Driver::start(driving);
        let place = self.numbers.hash_one(runtime).cast_signed();
        session::begin(&client, &self.config, place).await?;
        let session = self.role.begin(&client, place).await.map_err(failed)?;
        let (client, driver) = (Arc::new(client), driver.keep());
        Ok(LiveConnection { client, session, heartbeat, id, driver })
    }

    /// The connection with this id, if it is still in use.
    pub(super) fn live_with(&self, id: u64) -> Option<LiveConnection<R>> {
        self.slots().iter().find_map(|(_, slot)| match slot {
            SlotState::LiveConnection(live) if live.id == id => Some(live.clone()),
            _ => None,
        })
    }

    /// Uses the connection with this id no more: what it was asked and has not answered stays
    /// unknown.
    pub(super) fn forget(&self, id: u64) {
        let mut left = None;
        self.slots().retain(|(_, slot)| match slot {
            SlotState::LiveConnection(live) if live.id == id => {
                left = Some(live.clone());
                false
            }
            SlotState::Connecting(other, _) => *other != id,
            SlotState::LiveConnection(_) => true,
            SlotState::Failed(at, _) => at.elapsed() < FAILURE_CACHED_FOR,
        });
        if let Some(live) = left {
            live.driver.abort();
            self.role.interrupted();
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots<R>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the runtimes have.
type Slots<R> = Vec<(runtime::Id, SlotState<R>)>;

/// Puts a runtime's line in the place of the one it had, which comes back.
fn replace_slot<R: Role>(
    slots: &mut Slots<R>,
    runtime: runtime::Id,
    slot: SlotState<R>,
) -> Option<SlotState<R>> {
    let had = slots.iter().position(|(of, _)| *of == runtime);
    let had = had.map(|had| slots.swap_remove(had).1);
    slots.push((runtime, slot));
    had
}

/// Puts what became of an attempt to connect in its place, if that is still the attempt's.
fn settle<R: Role>(
    slots: &mut Slots<R>,
    of: runtime::Id,
    attempt: u64,
    slot: SlotState<R>,
) -> bool {
    let place = slots.iter_mut().find_map(|(runtime, slot)| match slot {
        SlotState::Connecting(id, _) if *runtime == of && *id == attempt => Some(slot),
        _ => None,
    });
    place.map(|place| *place = slot).is_some()
}

/// Reads and writes for a connection until it ends.
async fn drive<R: Role>(
    connection: Connection<Socket, NoTlsStream>,
    link: Weak<ConnectionSlot<R>>,
    role: Arc<R>,
    heartbeat: Arc<Heartbeat>,
    id: u64,
) {
    driver::drive(connection, |notification| {
        heartbeat.replied();
        role.notified(notification);
    })
    .await;
    if let Some(link) = link.upgrade() {
        link.forget(id);
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::Error;

    use super::*;

    struct Anything;

    impl Role for Anything {
        type Session = ();

        async fn begin(&self, _client: &Client, _place: i64) -> Result<(), Error> {
            Ok(())
        }
    }

    fn connecting(id: u64) -> SlotState<Anything> {
        SlotState::Connecting(id, oneshot::channel().1.shared())
    }

    fn failed() -> SlotState<Anything> {
        SlotState::Failed(Instant::now(), StoreError::new("no"))
    }

    /// Red without: the look at whose place it is (`settle`), and what `replace_slot` returns.
    #[tokio::test]
    async fn an_attempt_does_not_take_the_place_of_the_next() {
        let (runtime, mut slots) = (Handle::current().id(), Vec::new());
        assert!(replace_slot(&mut slots, runtime, connecting(1)).is_none());
        let replaced = replace_slot(&mut slots, runtime, connecting(2));
        assert!(matches!(replaced, Some(SlotState::Connecting(1, _))), "it is told what was there");
        assert!(!settle(&mut slots, runtime, 1, failed()), "its place is another's");
        assert!(matches!(slots[..], [(_, SlotState::Connecting(2, _))]));
        assert!(settle(&mut slots, runtime, 2, failed()));
        assert!(matches!(slots[..], [(_, SlotState::Failed(..))]));
        assert!(!settle(&mut slots, runtime, 2, connecting(2)), "it is over");
    }
}
