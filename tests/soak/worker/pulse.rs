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
        let stood = Arc::<AtomicU64>::default();
        let counts = Arc::downgrade(&stood);
        thread::spawn(move || {
            let mut last = Instant::now();
            while let Some(stood) = counts.upgrade() {
                drop(stood);
                thread::sleep(BEAT);
                let more = last.elapsed().saturating_sub(BEAT);
                last = Instant::now();
                if let Some(stood) = counts.upgrade() {
                    let more = u64::try_from(more.as_millis()).unwrap_or(u64::MAX);
                    stood.fetch_add(more, Ordering::Relaxed);
                }
            }
        });
        Self(stood)
    }

    pub(super) fn stood_still(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}
