//! What all holds of one manager share: its store, its watchdog, and the wait queues of the
//! process.

use crate::store::AnyStore;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::last_known::{LastKnown, WaitQueues};
use super::permits::Permits;
use crate::queue::{CachedLock, Limits};
use crate::watchdog::{Queues, Watchdog};

pub(crate) struct Core {
    pub(crate) watchdog: Arc<Watchdog>,
    queues: Arc<ProcessQueues>,
    permits: Permits,
}

impl Core {
    pub(crate) fn new(store: AnyStore, limits: Limits, linger: Duration) -> Self {
        let queues = Arc::new(ProcessQueues {
            queues: WaitQueues::new(limits),
            shared_queues: WaitQueues::new(limits),
        });
        let watchdog = Arc::new(Watchdog::new(store, queues.clone(), linger));
        Self { watchdog, queues, permits: Permits::default() }
    }

    pub(crate) fn store(&self) -> &AnyStore {
        self.watchdog.store()
    }

    /// The queues of callers that want a lock exclusively, and of readers in stores where a writer
    /// can let them in. A cached lock is kept in its queue too.
    pub(crate) fn queues(&self) -> &Arc<WaitQueues> {
        &self.queues.queues
    }

    /// The queues of callers that want a permit, and of readers in stores where no writer can let
    /// them in.
    pub(crate) fn shared_queues(&self) -> &Arc<WaitQueues> {
        &self.queues.shared_queues
    }

    pub(crate) fn permits(&self) -> &Permits {
        &self.permits
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.watchdog.fmt(f)
    }
}

struct ProcessQueues {
    queues: Arc<WaitQueues>,
    shared_queues: Arc<WaitQueues>,
}

impl Queues for ProcessQueues {
    fn recheck(&self, name: &str) -> Option<Instant> {
        if let Some(readers) = self.queues.read_known(name, LastKnown::readers).flatten() {
            readers.recheck(Instant::now());
        }
        match self.queues.check_cached(name, Instant::now()) {
            CachedLock::Expired(lock) => drop(lock),
            CachedLock::Until(until) => return Some(until),
            CachedLock::Gone => {}
        }
        None
    }

    fn reclaim_unclaimed(&self) {
        for queues in [&self.queues, &self.shared_queues] {
            drop(queues.reclaim_all(Instant::now()));
        }
    }

    fn release_cached(&self) {
        drop(self.queues.take_cached(None));
    }
}
