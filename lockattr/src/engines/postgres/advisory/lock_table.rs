//! The server's lock table, whose size is fixed: all sessions of the server share it.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::store::{Claim, StoreError};

/// How many locks the table has room for. The server may have room for a few more.
pub(super) const SIZE: &str = "select current_setting('max_locks_per_transaction')::bigint
    * (current_setting('max_connections')::bigint
        + current_setting('max_prepared_transactions')::bigint)";

/// The size of the table, once a session has read it.
#[derive(Default)]
pub(super) struct LockTable(AtomicUsize);

impl LockTable {
    pub(super) fn is(&self, size: usize) {
        self.0.store(size, Ordering::Relaxed);
    }

    /// A full table fails other clients' statements too, so one store uses half of it at most.
    fn limit(&self) -> Option<usize> {
        let size = self.0.load(Ordering::Relaxed);
        (size > 0).then_some(size / 2)
    }

    /// Why this many locks are too many for the server.
    pub(super) fn refuses(&self, locks: usize) -> Option<String> {
        let limit = self.limit().filter(|limit| locks > *limit)?;
        Some(format!(
            "{locks} locks are too many for `lock=session`: one store holds at most {limit}, half of \
             what the server's lock table has room for; lock fewer keys, raise \
             `max_locks_per_transaction` in the server's configuration, or use one lock for all of them"
        ))
    }

    /// Refuses a claim beside which the store holds `others` locks.
    pub(super) fn check(&self, claim: &Claim, others: usize) -> Result<(), StoreError> {
        match self.refuses(others.saturating_add(claim.keys().len())) {
            Some(why) => Err(StoreError::new(why).not_sent()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the half, or the comparison.
    #[test]
    fn half_of_the_table_is_the_limit_once_its_size_is_known() {
        let table = LockTable::default();
        assert_eq!(table.refuses(usize::MAX), None);
        table.is(6_400);
        assert_eq!(table.refuses(3_200), None);
        let why = table.refuses(3_201).unwrap();
        assert!(why.contains("max_locks_per_transaction") && why.contains("3200"), "{why}");
    }
}
