//! Bounds the requests that are under way, and orders those that wait.
//!
//! Servers answer a connection's requests in turn. What they cannot answer at once would wait in
//! sockets and in their own queues, where nothing can overtake it or take it back, and a renewal
//! would come behind thousands of acquires. So it waits here: a release overtakes acquires, and a
//! request whose caller is gone is never sent. Renewals do not wait at all: the watchdog sends few,
//! for many leases each.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::platform::sync::{Mutex, MutexGuard};

/// How many acquires are under way at most. Three servers on two cores serve about as many a second
/// with 16 as with 512, and each more is one more before a renewal. But over a network and with a
/// disk that take 5 ms, 16 would be 3,000 a second.
const MAX_ACQUIRES: usize = 64;

/// How many requests are under way at most. Acquires leave room, so a release does not wait for
/// their replies.
const MAX_REQUESTS: usize = 2 * MAX_ACQUIRES;

/// How many claims one request removes at most.
pub(super) const MAX_REMOVALS: usize = MAX_ACQUIRES / 2;

/// What a request is for. The first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// It releases a lock, or finds out whether a claim's turn has come.
    Release,
    Acquire,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Release, Self::Acquire];

    fn limit(self) -> usize {
        match self {
            Self::Release => MAX_REQUESTS,
            Self::Acquire => MAX_ACQUIRES,
        }
    }
}

/// The requests of one store.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    under_way: usize,
    waiting: BTreeMap<(Purpose, u64), Waiting>,
    last: u64,
}

struct Waiting {
    size: usize,
    admitted: oneshot::Sender<Permit>,
}

/// Counts a request as under way until it is dropped.
pub(crate) struct Permit {
    gate: Gate,
    size: usize,
}

/// A request that waits. It leaves the gate when this is dropped.
struct Place {
    gate: Gate,
    at: (Purpose, u64),
    admitted: oneshot::Receiver<Permit>,
}

impl Gate {
    /// Returns once a request that counts as `size` may be sent. If the caller drops this first,
    /// nothing is sent.
    pub(crate) async fn enter(&self, purpose: Purpose, size: usize) -> Permit {
        let mut place = {
            let mut state = self.state();
            let is_first = state.waiting.first_key_value().is_none_or(|((it, _), _)| *it > purpose);
            if is_first && state.under_way < purpose.limit() {
                state.under_way += size;
                return Permit { gate: self.clone(), size };
            }
            let (sender, admitted) = oneshot::channel();
            state.last += 1;
            let at = (purpose, state.last);
            state.waiting.insert(at, Waiting { size, admitted: sender });
            Place { gate: self.clone(), at, admitted }
        };
        match (&mut place.admitted).await {
            Ok(permit) => permit,
            // The sender is only dropped with the place.
            Err(_) => Permit { gate: self.clone(), size: 0 },
        }
    }

    /// Admits as many as there is room for.
    fn admit(&self) {
        loop {
            let (Waiting { size, admitted }, permit) = {
                let mut state = self.state();
                let Some(first) = state.next() else { return };
                state.under_way += first.size;
                let permit = Permit { gate: self.clone(), size: first.size };
                (first, permit)
            };
            // The caller has given up in this moment.
            if let Err(unused) = admitted.send(permit) {
                self.state().under_way -= size;
                unused.forget();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic can leave this half-changed, so a poisoned mutex is safe to use.
        self.0.lock()
    }
}

impl State {
    /// The next request that may be sent.
    fn next(&mut self) -> Option<Waiting> {
        Purpose::ALL.into_iter().find_map(|purpose| {
            let first = self.waiting.range((purpose, 0)..=(purpose, u64::MAX)).next();
            let (at, _) = first.filter(|_| self.under_way < purpose.limit())?;
            let at = *at;
            self.waiting.remove(&at)
        })
    }
}

impl Permit {
    /// Drops this without a change to its gate.
    fn forget(mut self) {
        self.size = 0;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.size > 0 {
            self.gate.state().under_way -= self.size;
            self.gate.admit();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _left = self.gate.state().waiting.remove(&self.at);
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let (under_way, waiting) = (state.under_way, state.waiting.len());
        f.debug_struct("Gate").field("under_way", &under_way).field("waiting", &waiting).finish()
    }
}
