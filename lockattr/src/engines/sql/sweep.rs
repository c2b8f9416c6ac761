//! When the connections to a database sweep it: delete the rows of what has ended.
//!
//! Each connection asks with each heartbeat whether a sweep is due, whatever its process does. The
//! database answers, and lets one connection at a time read some hundred rows; with that answer it
//! knows whether there are more. So no call of a lock deletes for others, and a process that is only
//! connected cleans up behind those that have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::store::StoreError;

/// Each connection asks this often at least, so that what has ended is deleted within two minutes.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The pause between the steps of a sweep, at least. It is as long as the step was, so that a sweep
/// takes no more than half of one core.
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// How long a connection pauses that has asked at `asked`, and was told whether there are more rows.
pub(in crate::engines) fn pause_after(more: bool, asked: Instant, heartbeat: Duration) -> Duration {
    if more { asked.elapsed().max(MIN_PAUSE) } else { heartbeat.min(MAX_PAUSE) }
}

/// Whether a store has warned that the server refuses to sweep.
#[derive(Clone, Default)]
pub(in crate::engines) struct SweepWarning(Arc<AtomicBool>);

impl SweepWarning {
    /// Warns, once for each store.
    pub(in crate::engines) fn warn_once(&self, address: &str, error: &StoreError) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                server.address = address,
                error.message = %error,
                "this process cannot delete the rows of locks that have ended, so that another one \
                 has to: grant its user the rights that the docs of the store name"
            );
        }
    }
}
