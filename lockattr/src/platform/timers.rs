//! Whether the current runtime has timers. Tokio has no query for that, and panics instead.

use std::panic::catch_unwind;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;

/// Whether code here can wait for a time: inside a tokio runtime that was built with timers.
pub(crate) fn has_timers() -> bool {
    Handle::try_current().is_ok() && catch_unwind(|| drop(sleep(Duration::ZERO))).is_ok()
}
