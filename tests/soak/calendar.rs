//! The calendar of a process that works: it jumps when the driver reports it. The clock by which leases
//! are counted does not.
//!
//! `libfaketime` would jump a whole process, and is not on every machine: so the runtime is notified
//! another calendar in the one place where it asks for it.

use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use lockattr::__sim::{Machine, run_on};

/// By how many milliseconds it is ahead.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// Chance as it is, and a calendar that is wrong.
struct Wrong;

/// The thread that calls this goes by the wrong calendar from now on.
pub(crate) fn is_wrong_here() {
    run_on(Some(Rc::new(Wrong)));
}

/// It jumps so many milliseconds.
pub(crate) fn jumps(millis: i64) {
    AHEAD.fetch_add(millis, Ordering::Relaxed);
}

impl Machine for Wrong {
    fn random_bits(&self) -> u64 {
        rand::random()
    }

    fn since_1970(&self) -> Duration {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let ahead = AHEAD.load(Ordering::Relaxed);
        let shift = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { now.saturating_sub(shift) } else { now + shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_jumps_both_ways() {
        let now = || Wrong.since_1970();
        let before = now();
        jumps(3_600_000);
        assert!(now() >= before + Duration::from_secs(3600));
        jumps(-7_200_000);
        assert!(now() < before);
        jumps(3_600_000);
    }
}
