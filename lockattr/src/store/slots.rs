//! The connections of a store, one in each slot: made once for all callers that ask meanwhile, used until it is
//! forgotten. A failure to connect is returned to later callers for a moment, before the next attempt.

// Public where the simulation of clients and servers uses it (`sim.rs`).
#![cfg_attr(not(feature = "__sim"), allow(unreachable_pub))]
// The other engines need a part of it.
#![cfg_attr(not(feature = "redis"), allow(dead_code))]

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::StoreError;
use crate::platform::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How long a failure to connect is returned to later callers.
pub(crate) const FAILURE_CACHED_FOR: Duration = Duration::from_millis(50);

/// The slots, by runtime as a rule: a connection ends with the runtime that made it, and a manager may serve
/// several. They are few, so that a scan takes less time than a hash.
#[derive(Debug)]
pub struct Slots<K, C> {
    slots: RwLock<Vec<(K, Slot<C>)>>,
    last_id: AtomicU64,
}

#[derive(Debug)]
enum Slot<C> {
    /// A task of its own connects, so that a caller with a short timeout does not end it for the others. Not
    /// a `watch`, which wakes its waiters in no fixed order.
    Connecting(u64, Shared<oneshot::Receiver<Result<C, StoreError>>>),
    Live(u64, C),
    Failed(Instant, StoreError),
}

/// An attempt to connect that has to be made.
#[derive(Debug)]
pub struct Attempt<C> {
    /// The number of the connection.
    pub id: u64,
    result: oneshot::Sender<Result<C, StoreError>>,
}

impl<C> Attempt<C> {
    /// Returns this to all callers that wait for the attempt.
    pub fn finish(self, outcome: Result<C, StoreError>) {
        // If all of them have given up, the next caller finds the connection in its slot. A connection that
        // comes back must not be kept here.
        drop(self.result.send(outcome));
    }
}

/// The outcome of connecting. A panic is a failure like another: it has words, and the next attempt
/// comes after a pause.
pub(crate) async fn unless_panics<C>(
    connecting: impl Future<Output = Result<C, StoreError>>,
) -> Result<C, StoreError> {
    AssertUnwindSafe(connecting).catch_unwind().await.unwrap_or_else(|panic| {
        let literal = panic.downcast_ref::<&str>().copied();
        let said = literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let said = said.unwrap_or("without a message");
        Err(StoreError::new(format!("the attempt to connect panicked: {said}")).not_sent())
    })
}

/// The runtime of the caller.
pub(crate) fn current_runtime() -> Result<Handle, StoreError> {
    Handle::try_current().map_err(|_| {
        StoreError::new("this store can only be used inside a tokio runtime").not_sent()
    })
}

/// Whether the caller is on this runtime.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) fn is_current(runtime: &Handle) -> bool {
    Handle::try_current().is_ok_and(|current| current.id() == runtime.id())
}

impl<K: Copy + PartialEq, C: Clone> Slots<K, C> {
    /// Returns the connection in this slot. If there is none, it calls `connect`, which starts a task that
    /// [settles](Self::settle) and finishes the attempt.
    pub async fn get(&self, key: K, connect: impl FnOnce(Attempt<C>)) -> Result<C, StoreError> {
        let (id, connecting, attempt) = {
            let mut slots = self.write();
            match slots.iter().find(|(other, _)| *other == key).map(|(_, slot)| slot) {
                Some(Slot::Live(_, live)) => return Ok(live.clone()),
                Some(Slot::Failed(at, error)) if at.elapsed() < FAILURE_CACHED_FOR => {
                    return Err(error.clone());
                }
                Some(Slot::Connecting(id, connecting)) => (*id, connecting.clone(), None),
                _ => {
                    let id = self.last_id.fetch_add(1, Ordering::Relaxed);
                    let (result, connecting) = oneshot::channel();
                    let connecting = connecting.shared();
                    slots.retain(|(other, _)| *other != key);
                    slots.push((key, Slot::Connecting(id, connecting.clone())));
                    (id, connecting, Some(Attempt { id, result }))
                }
            }
        };
        if let Some(attempt) = attempt {
            connect(attempt);
        }
        connecting.await.unwrap_or_else(|_| {
            // No process would finish this attempt any more.
            self.forget(id);
            Err(StoreError::new("the tokio runtime that was connecting has shut down").not_sent())
        })
    }

    /// The connection in this slot, if there is one, and its number.
    pub fn live(&self, key: K) -> Option<(u64, C)> {
        self.find_live(|other, _| *other == key)
    }

    /// The connection with this number, if it is still in use.
    pub fn live_with(&self, id: u64) -> Option<C> {
        self.find_live(|_, other| other == id).map(|(_, live)| live)
    }

    fn find_live(&self, matches: impl Fn(&K, u64) -> bool) -> Option<(u64, C)> {
        self.read().iter().find_map(|(key, slot)| match slot {
            Slot::Live(id, live) if matches(key, *id) => Some((*id, live.clone())),
            _ => None,
        })
    }

    /// All connections that are in use.
    pub fn all(&self) -> Vec<C> {
        let slots = self.read();
        let live = slots.iter().filter_map(|(_, slot)| match slot {
            Slot::Live(_, live) => Some(live.clone()),
            _ => None,
        });
        live.collect()
    }

    /// Puts the outcome of an attempt in its slot; `false` if the slot is another attempt's by now.
    pub fn settle(&self, key: K, id: u64, outcome: &Result<C, StoreError>) -> bool {
        let mut slots = self.write();
        let slot = slots.iter_mut().find_map(|(other, slot)| match slot {
            Slot::Connecting(attempt, _) if *other == key && *attempt == id => Some(slot),
            _ => None,
        });
        let Some(slot) = slot else { return false };
        *slot = match outcome {
            Ok(live) => Slot::Live(id, live.clone()),
            Err(error) => Slot::Failed(Instant::now(), error.clone()),
        };
        true
    }

    /// Does not use the connection with this number any more, and returns it if it was in use. What it was asked
    /// and has not answered stays unknown.
    pub fn forget(&self, id: u64) -> Option<C> {
        let mut forgotten = None;
        self.write().retain(|(_, slot)| match slot {
            Slot::Live(other, live) if *other == id => {
                forgotten = Some(live.clone());
                false
            }
            Slot::Connecting(other, _) => *other != id,
            Slot::Live(..) => true,
            Slot::Failed(at, _) => at.elapsed() < FAILURE_CACHED_FOR,
        });
        forgotten
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<(K, Slot<C>)>> {
        self.slots.write()
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<(K, Slot<C>)>> {
        self.slots.read()
    }
}

impl<K, C> Default for Slots<K, C> {
    fn default() -> Self {
        Self { slots: RwLock::default(), last_id: AtomicU64::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;
    use tokio::time::{advance, timeout};

    use super::*;

    type Connections = Slots<(), &'static str>;

    fn unexpected(_attempt: Attempt<&'static str>) {
        panic!("it is connected, or another caller connects");
    }

    /// Gets the connection, and makes it with this outcome if there is none.
    async fn get(
        slots: &Arc<Connections>,
        outcome: Result<&'static str, StoreError>,
    ) -> Result<&'static str, StoreError> {
        let connect = |attempt: Attempt<&'static str>| {
            let slots = slots.clone();
            tokio::spawn(async move {
                slots.settle((), attempt.id, &outcome);
                attempt.finish(outcome);
            });
        };
        slots.get((), connect).await
    }

    #[tokio::test]
    async fn callers_share_an_attempt_which_outlives_the_caller_that_began_it() {
        let (slots, go) = (Arc::<Connections>::default(), Arc::new(Notify::new()));
        let connect = |attempt: Attempt<&'static str>| {
            let (slots, go) = (slots.clone(), go.clone());
            tokio::spawn(async move {
                go.notified().await;
                slots.settle((), attempt.id, &Ok("made"));
                attempt.finish(Ok("made"));
            });
        };
        let first = timeout(Duration::ZERO, slots.get((), connect));
        assert!(first.await.is_err(), "this caller gives up");
        let second = slots.get((), unexpected);
        let third = slots.get((), unexpected);
        go.notify_one();
        let (second, third) = tokio::join!(second, third);
        assert_eq!((second.unwrap(), third.unwrap()), ("made", "made"));
        assert_eq!(slots.get((), unexpected).await.unwrap(), "made");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_returned_for_a_moment_and_then_tried_again() {
        let slots = Arc::<Connections>::default();
        let failed = get(&slots, Err(StoreError::new("away"))).await;
        assert_eq!(failed.unwrap_err().to_string(), "away");
        advance(FAILURE_CACHED_FOR - Duration::from_millis(1)).await;
        let failed = slots.get((), unexpected).await;
        assert_eq!(failed.unwrap_err().to_string(), "away");
        advance(Duration::from_millis(1)).await;
        assert_eq!(get(&slots, Ok("back")).await.unwrap(), "back");
    }

    /// Red without: `unless_panics`, here and around each engine's way to connect.
    #[tokio::test(start_paused = true)]
    async fn a_panic_while_connecting_is_a_failure_with_its_words_and_a_pause() {
        let (slots, attempts) = (Arc::<Connections>::default(), AtomicU64::new(0));
        let connect = |attempt: Attempt<&'static str>| {
            attempts.fetch_add(1, Ordering::Relaxed);
            let slots = slots.clone();
            tokio::spawn(async move {
                let outcome = unless_panics(async { panic!("no {} was left", "thread") }).await;
                slots.settle((), attempt.id, &outcome);
                attempt.finish(outcome);
            });
        };
        for _ in 0..800 {
            let failed = slots.get((), &connect).await.unwrap_err();
            let says = "the attempt to connect panicked: no thread was left";
            assert_eq!((failed.to_string().as_str(), failed.is_not_sent()), (says, true));
        }
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
        advance(FAILURE_CACHED_FOR).await;
        slots.get((), &connect).await.unwrap_err();
        assert_eq!(attempts.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_connection_that_is_forgotten_is_returned_once_and_replaced() {
        let slots = Arc::<Connections>::default();
        get(&slots, Ok("first")).await.unwrap();
        assert_eq!(slots.live(()), Some((0, "first")));
        assert_eq!(slots.forget(0), Some("first"));
        assert_eq!((slots.forget(0), slots.live(())), (None, None));
        assert_eq!(get(&slots, Ok("second")).await.unwrap(), "second");
        assert_eq!(slots.forget(0), None, "the first is not in use");
        assert_eq!((slots.live_with(0), slots.live_with(1)), (None, Some("second")));
        assert_eq!(slots.all(), ["second"]);
        assert_eq!(slots.forget(1), Some("second"));
        assert_eq!(slots.live(()), None);
    }

    /// Red without: the check of whose slot it is (`settle`).
    #[tokio::test]
    async fn an_attempt_does_not_take_the_slot_of_the_next() {
        let slots = Arc::<Connections>::default();
        let mut first = None;
        let begun = slots.get((), |attempt| first = Some(attempt.id));
        assert!(begun.await.is_err(), "the attempt was dropped");
        let mut second = None;
        let waiting = slots.get((), |attempt| second = Some(attempt));
        assert!(timeout(Duration::ZERO, waiting).await.is_err());
        let (first, second_id) = (first.unwrap(), second.unwrap().id);
        assert!(!slots.settle((), first, &Ok("first")), "the slot is another's");
        assert_eq!(slots.live(()), None);
        assert!(slots.settle((), second_id, &Ok("second")));
        assert!(!slots.settle((), second_id, &Ok("again")), "it is settled");
        assert_eq!(slots.live(()), Some((second_id, "second")));
    }

    #[tokio::test]
    async fn an_attempt_that_no_process_makes_any_more_does_not_block_the_slot() {
        let slots = Arc::<Connections>::default();
        let dropped = slots.get((), drop).await;
        assert!(dropped.unwrap_err().is_not_sent());
        assert_eq!(get(&slots, Ok("made")).await.unwrap(), "made");
    }
}
