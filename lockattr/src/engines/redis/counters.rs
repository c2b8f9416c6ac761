//! When a fencing counter may be counted up by a bare `INCR`.
//!
//! The scripts count by the server's clock, and never behind the last number. A bare `INCR` knows no clock. It is
//! safe after a script has raised the counter to the clock: fewer than a million acquisitions a second never
//! overtake that, so the clock is ahead of every number that was given before. What may take a counter back
//! comes with a new connection (a restart, a failover), or with an error on the old one, or, behind a
//! proxy, unseen. So each connection counts by a script first, and again after every error and
//! with every heartbeat.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redis::{ServerErrorKind, Value};

/// A server has one counter, and a cluster has one for each slot.
const SLOTS: usize = 16_384;

/// Microseconds from 2024-01-01 to 2026-01-01. A smaller number is none that the clock has given: the counter was
/// lost.
const FLOOR: u64 = 731 * 86_400 * 1_000_000;

/// The greatest number of each counter that this store has seen.
pub(super) struct Counters(Box<[AtomicU64]>);

/// Which counters a script has raised over one connection.
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

    /// The greatest number seen so far. An `INCR` that is sent after this call has to exceed it.
    pub(super) fn seen(&self, slot: usize) -> u64 {
        self.0[slot % self.0.len()].load(Ordering::Acquire)
    }

    /// An acquisition has this number.
    pub(super) fn saw(&self, slot: usize, number: u64) {
        self.0[slot % self.0.len()].fetch_max(number, Ordering::AcqRel);
    }
}

/// Whether a number that `INCR` answered is an acquisition's, if `seen` was seen before it was asked for.
pub(super) fn counts(number: u64, seen: u64) -> bool {
    number > seen.max(FLOOR)
}

impl Raised {
    /// None, over a new connection.
    pub(super) fn none() -> Self {
        Self { slots: zeros(SLOTS / 64), refused: AtomicBool::new(false) }
    }

    /// A script has counted an acquisition over this connection.
    pub(super) fn raise(&self, slot: usize) {
        self.word(slot).fetch_or(bit(slot), Ordering::AcqRel);
    }

    /// Whether a bare `INCR` may follow.
    pub(super) fn is_raised(&self, slot: usize) -> bool {
        let is_raised = self.word(slot).load(Ordering::Acquire) & bit(slot) != 0;
        is_raised && !self.refused.load(Ordering::Relaxed)
    }

    /// From here on every counter has to be raised again.
    pub(super) fn clear(&self) {
        self.slots.iter().for_each(|word| word.store(0, Ordering::Release));
    }

    /// A command of a pair was answered so: after an error the counter may be another one.
    pub(super) fn doubts(&self, reply: &Value) {
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

    /// Red without: either side of the comparison in `counts`.
    #[test]
    fn a_number_of_a_lost_counter_counts_nothing() {
        assert!(!counts(1, 0) && !counts(FLOOR, 0));
        assert!(counts(FLOOR + 1, 0));
        assert!(!counts(FLOOR + 7, FLOOR + 7));
        assert!(counts(FLOOR + 8, FLOOR + 7));
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
