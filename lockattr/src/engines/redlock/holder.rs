//! The holder of a lock, from what a majority of the nodes replies.

use super::quorum::Quorum;
use crate::Holder;
use crate::store::StoreError;

/// The replies so far.
pub(super) struct HolderReplies {
    quorum: Quorum,
    holders: Vec<Option<Holder>>,
    error: Option<StoreError>,
}

impl HolderReplies {
    pub(super) fn of(quorum: Quorum) -> Self {
        Self { quorum, holders: Vec::new(), error: None }
    }

    /// Counts a reply. Returns whether a majority agrees.
    pub(super) fn count(&mut self, reply: Result<Option<Holder>, StoreError>) -> bool {
        match reply {
            Ok(holder) => self.holders.push(holder),
            Err(error) => self.error = Some(error),
        }
        self.agreed(&self.holders).is_some()
    }

    /// Returns the holder: no process holds a lock that no majority granted.
    pub(super) fn outcome(self) -> Result<Option<Holder>, StoreError> {
        // A key is done once a majority reports it. Until then its lock is held.
        let undone = || -> Vec<_> {
            self.holders.iter().cloned().map(|one| one.map(Holder::not_done)).collect()
        };
        let agreed = self.agreed(&self.holders).or_else(|| self.agreed(&undone()));
        match (agreed, self.error) {
            (Some(holder), _) => Ok(holder),
            (None, _) if self.holders.len() >= self.quorum.majority() => Ok(None),
            (None, error) => Err(error.unwrap_or_else(|| {
                StoreError::new("fewer than a majority of the servers replied")
            })),
        }
    }

    /// Returns what a majority replied. The lease ends when the first of theirs does.
    fn agreed(&self, holders: &[Option<Holder>]) -> Option<Option<Holder>> {
        holders.iter().find_map(|one| {
            let same: Vec<_> = holders.iter().filter(|other| is_same(one, other)).collect();
            let ends = same.iter().filter_map(|one| one.as_ref()?.remaining).min();
            let holder = one.clone().map(|holder| Holder { remaining: ends, ..holder });
            (same.len() >= self.quorum.majority()).then_some(holder)
        })
    }
}

fn is_same(one: &Option<Holder>, other: &Option<Holder>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(other),
        (None, None) => true,
        _ => false,
    }
}
