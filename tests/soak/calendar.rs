//! The wall clock of a worker process: it jumps when the driver orders that. The clock that
//! measures leases does not.
//!
//! `libfaketime` would change the clock of a whole process, and is not installed everywhere. So the
//! runtime gets another wall clock at the only place where it asks for one.

use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use lockattr::__sim::{Machine, run_on};

/// By how many milliseconds the wall clock is ahead.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// The real random source, with a wrong wall clock.
struct Wrong;

/// The calling thread uses the wrong wall clock from now on.
pub(crate) fn is_wrong_here() {
    run_on(Some(Rc::new(Wrong)));
}

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
