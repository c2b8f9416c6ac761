//! What all holds of one manager share: its store, the watchdog that renews them, and the wait queues of the process.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::known::{Known, Lines};
use super::permits::Permits;
use crate::queue::{Kept, Limits};
use crate::store::Store;
use crate::watchdog::{Queues, Watchdog};

/// What all holds of one manager share.
pub(crate) struct Core {
    pub(crate) watchdog: Arc<Watchdog>,
    lines: Arc<WaitQueues>,
    permits: Permits,
}

impl Core {
    pub(crate) fn new(store: Arc<dyn Store>, limits: Limits, linger: Duration) -> Self {
        let lines = Arc::new(WaitQueues { lines: Lines::new(limits), askers: Lines::new(limits) });
        let watchdog = Arc::new(Watchdog::new(store, lines.clone(), linger));
        Self { watchdog, lines, permits: Permits::default() }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.watchdog.store()
    }

    /// The queues of callers that want a lock alone, or to read where a writer can let them in. A cached lock
    /// lies in its queue too.
    pub(crate) fn lines(&self) -> &Arc<Lines> {
        &self.lines.lines
    }

    /// The queues of callers that want a permit, or to read where no writer can let them in.
    pub(crate) fn askers(&self) -> &Arc<Lines> {
        &self.lines.askers
    }

    /// The permits of this process.
    pub(crate) fn permits(&self) -> &Permits {
        &self.permits
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.watchdog.fmt(f)
    }
}

/// The wait queues of one manager in this process.
struct WaitQueues {
    lines: Arc<Lines>,
    askers: Arc<Lines>,
}

impl Queues for WaitQueues {
    fn look_after(&self, name: &str) -> Option<Instant> {
        if let Some(readers) = self.lines.knows(name, Known::readers).flatten() {
            readers.look(Instant::now());
        }
        match self.lines.kept(name, Instant::now()) {
            Kept::Over(lock) => drop(lock),
            Kept::Until(until) => return Some(until),
            Kept::Gone => {}
        }
        None
    }

    fn pass_over_idle(&self) {
        for lines in [&self.lines, &self.askers] {
            drop(lines.look_at_all(Instant::now()));
        }
    }

    fn release_cached(&self) {
        drop(self.lines.take_kept(None));
    }
}
