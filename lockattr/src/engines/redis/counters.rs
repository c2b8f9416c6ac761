//! When a bare `INCR` may increment a fencing counter.
//!
//! The scripts raise the counter to the server's clock, and above the last token. A bare `INCR`
//! reads no clock. It is safe after a script has raised the counter: at fewer than a million
//! acquisitions a second the counter never overtakes the clock (in microseconds), so the clock is
//! ahead of every token granted before. A counter can only go back with a new connection (a
//! restart, a failover), with an error on the old one, or unnoticed: behind a proxy, or if an
//! operator puts an older one in its place (`SWAPDB`). So each connection counts with a script first,
//! and again after every error and every heartbeat.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redis::{ServerErrorKind, Value};

/// A server has one counter, a cluster one for each slot.
const SLOTS: usize = 16_384;

/// Microseconds from 2024-01-01 to 2026-01-01. No clock gives a smaller token: the counter was
/// lost.
const FLOOR: u64 = 731 * 86_400 * 1_000_000;

/// The greatest token of each counter that this store has seen.
pub(super) struct Counters(Box<[AtomicU64]>);

/// The counters that a script has raised over one connection.
pub(super) struct Raised {
    slots: Box<[AtomicU64]>,
    /// The user of this connection may not send `INCR`.
    refused: AtomicBool,
}

impl Counters {
    pub(super) fn of_a_server() -> Self {
        Self(zeros(1))
    }

    pub(super) fn of_a_cluster() -> Self {
        Self(zeros(SLOTS))
    }

    /// Returns the greatest token seen. An `INCR` sent after this call must exceed it.
    pub(super) fn last_seen(&self, slot: usize) -> u64 {
        self.0[slot % self.0.len()].load(Ordering::Acquire)
    }

    /// Records the token of an acquisition.
    pub(super) fn record(&self, slot: usize, counter: u64) {
        self.0[slot % self.0.len()].fetch_max(counter, Ordering::AcqRel);
    }
}

/// Returns whether a reply to `INCR` is a valid token. `seen` was read before the `INCR` was sent.
pub(super) fn is_plausible(counter: u64, seen: u64) -> bool {
    counter > seen.max(FLOOR)
}

impl Raised {
    /// No counter is raised yet: the connection is new.
    pub(super) fn none() -> Self {
        Self { slots: zeros(SLOTS / 64), refused: AtomicBool::new(false) }
    }

    /// Records that a script has counted an acquisition over this connection.
    pub(super) fn raise(&self, slot: usize) {
        self.word(slot).fetch_or(bit(slot), Ordering::AcqRel);
    }

    /// Returns whether a bare `INCR` is allowed.
    pub(super) fn is_raised(&self, slot: usize) -> bool {
        let is_raised = self.word(slot).load(Ordering::Acquire) & bit(slot) != 0;
        is_raised && !self.refused.load(Ordering::Relaxed)
    }

    /// Requires a script to raise every counter again.
    pub(super) fn clear(&self) {
        self.slots.iter().for_each(|word| word.store(0, Ordering::Release));
    }

    /// Clears the marks if `reply` is an error: the counter may be a different one now.
    pub(super) fn note_error(&self, reply: &Value) {
        let Value::ServerError(error) = reply else { return };
        self.clear();
        if error.kind() == Some(ServerErrorKind::NoPerm) {
            self.refused.store(true, Ordering::Relaxed);
        }
    }

    fn word(&self, slot: usize) -> &AtomicU64 {
        &self.slots[slot % SLOTS / 64]
    }
}

fn bit(slot: usize) -> u64 {
    1 << (slot % 64)
}

fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: either side of the comparison in `is_plausible`.
    #[test]
    fn a_number_of_a_lost_counter_counts_nothing() {
        assert!(!is_plausible(1, 0) && !is_plausible(FLOOR, 0));
        assert!(is_plausible(FLOOR + 1, 0));
        assert!(!is_plausible(FLOOR + 7, FLOOR + 7));
        assert!(is_plausible(FLOOR + 8, FLOOR + 7));
    }

    /// Red without: the shift in `bit`, or the division in `word`.
    #[test]
    fn each_slot_of_a_cluster_is_raised_for_itself() {
        let raised = Raised::none();
        raised.raise(65);
        let all = (0..SLOTS).filter(|slot| raised.is_raised(*slot));
        assert_eq!(all.collect::<Vec<_>>(), [65]);
        raised.clear();
        assert!(!raised.is_raised(65));
    }
}
