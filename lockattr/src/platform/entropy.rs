//! Random bits and the wall clock.
//!
//! One place for both, so that a simulation can replace them (`simulated.rs`) and repeat a run.

use std::cell::RefCell;
use std::time::{Duration, SystemTime};

use crate::platform::process::Process;

pub(crate) fn random_bits() -> u64 {
    #[cfg(feature = "__sim")]
    if let Some(bits) = crate::platform::simulated::from_machine(|machine| machine.random_bits()) {
        return bits;
    }
    MADE_IN.with_borrow_mut(|made_in| {
        // A fork copied the generator with its state, so it would repeat the bits of its parent.
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

/// A random number in `0..1`.
pub(crate) fn random_fraction() -> f64 {
    // As many bits as the fraction of an `f64` has.
    (random_bits() >> 11) as f64 / (1_u64 << 53) as f64
}

pub(crate) fn since_1970() -> Duration {
    #[cfg(feature = "__sim")]
    if let Some(time) = crate::platform::simulated::from_machine(|machine| machine.since_1970()) {
        return time;
    }
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
