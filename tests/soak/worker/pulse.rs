//! How long this process was stopped, which does not count as waiting.
#![expect(clippy::disallowed_methods, reason = "a thread that no runtime can hold up")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BEAT: Duration = Duration::from_millis(50);

/// A thread that measures for how long it did not run.
pub(super) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    pub(super) fn start() -> Self {
        let stopped = Arc::<AtomicU64>::default();
        let counts = Arc::downgrade(&stopped);
        thread::spawn(move || {
            let mut last = Instant::now();
            while let Some(stopped) = counts.upgrade() {
                drop(stopped);
                thread::sleep(BEAT);
                let more = last.elapsed().saturating_sub(BEAT);
                last = Instant::now();
                if let Some(stopped) = counts.upgrade() {
                    let more = u64::try_from(more.as_millis()).unwrap_or(u64::MAX);
                    stopped.fetch_add(more, Ordering::Relaxed);
                }
            }
        });
        Self(stopped)
    }

    pub(super) fn stopped_for(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}
