//! In the background of a terminal: who reads there is stopped, and so may be who writes or changes a
//! setting. Until somebody calls it to the front, for a process that holds a lock forever.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Does something that does not stop this thread, nor what it starts meanwhile, as long as that does not
/// unblock signals: writing succeeds there, and reading is an error.
pub(crate) fn unstopped<T>(act: impl FnOnce() -> T) -> T {
    // Blocked is as good as ignored for a terminal, and inherited by what is started.
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
