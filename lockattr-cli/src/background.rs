//! Terminal access from a background process group. The terminal stops such a process when it
//! reads, and possibly when it writes or changes a setting, until a user brings it to the
//! foreground: for a process that holds a lock, perhaps never.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Runs `act` without a stop by the terminal of this thread, or of a process that it starts and
/// that does not unblock signals: a write succeeds, and a read is an error.
pub(crate) fn unstopped<T>(act: impl FnOnce() -> T) -> T {
    // A terminal treats blocked signals like ignored ones, and child processes inherit the mask.
    let mut stops = SigSet::empty();
    stops.add(Signal::SIGTTIN);
    stops.add(Signal::SIGTTOU);
    let before = stops.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let done = act();
    if let Ok(before) = before {
        before.thread_set_mask().ok();
    }
    done
}
