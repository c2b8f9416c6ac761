//! What a process hears from the machine it runs on: chance, and what its calendar shows.
//!
//! One place for both, so that a simulation can say them (`sim.rs`) and repeat a run.

use std::cell::RefCell;
use std::time::{Duration, SystemTime};

use crate::platform::process::Process;

/// Bits that no process can foresee.
pub(crate) fn random_bits() -> u64 {
    #[cfg(feature = "__sim")]
    if let Some(bits) = crate::platform::simulated::said(|machine| machine.random_bits()) {
        return bits;
    }
    MADE_IN.with_borrow_mut(|made_in| {
        // Its generator was copied with it, and gives what its parent's gives.
        if !made_in.is_current() && rand::rng().reseed().is_ok() {
            *made_in = Process::current();
        }
    });
    rand::random()
}

thread_local! {
    /// The process in which this thread's generator got its seed.
    static MADE_IN: RefCell<Process> = RefCell::new(Process::current());
}

/// In `0..1`.
pub(crate) fn random_fraction() -> f64 {
    // As many bits as a fraction has.
    (random_bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// How long ago 1970 began, by the calendar.
pub(crate) fn since_1970() -> Duration {
    #[cfg(feature = "__sim")]
    if let Some(time) = crate::platform::simulated::said(|machine| machine.since_1970()) {
        return time;
    }
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
