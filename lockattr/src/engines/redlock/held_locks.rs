//! The held locks, from what a majority of the nodes lists. Pure.

use std::collections::BTreeMap;

use super::quorum::Quorum;
use crate::store::StoreError;
use crate::{HeldLock, HeldLocks, Holder};

/// The lists of the nodes that replied, and an error of the others.
pub(super) struct HeldLockLists {
    quorum: Quorum,
    lists: Vec<Vec<HeldLock>>,
    /// The most names that one node left out.
    left_out: u64,
    error: Option<StoreError>,
}

impl HeldLockLists {
    pub(super) fn of(quorum: Quorum) -> Self {
        Self { quorum, lists: Vec::new(), left_out: 0, error: None }
    }

    pub(super) fn add(&mut self, reply: Result<HeldLocks, StoreError>) {
        match reply {
            Ok(HeldLocks { locks, left_out }) => {
                self.lists.push(locks);
                self.left_out = self.left_out.max(left_out);
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Returns the locks that a majority lists: no process holds a lock that no majority granted.
    pub(super) fn outcome(self) -> Result<HeldLocks, StoreError> {
        let majority = self.quorum.majority();
        if self.lists.len() < majority {
            return Err(self.error.unwrap_or_else(|| {
                StoreError::new("fewer than a majority of the servers replied")
            }));
        }
        let mut by_key = BTreeMap::<_, Vec<_>>::new();
        for held in self.lists.into_iter().flatten() {
            by_key.entry(held.key.clone()).or_default().push(held);
        }
        let agreed = by_key.into_values().filter_map(|mut reported| {
            agreed(&reported, majority).or_else(|| {
                // A key is done once a majority reports it. Until then its lock is held.
                for held in &mut reported {
                    held.holder = std::mem::take(&mut held.holder).not_done();
                }
                agreed(&reported, majority)
            })
        });
        Ok(HeldLocks { locks: agreed.collect(), left_out: self.left_out })
    }
}

/// Returns the lock as a majority of the nodes lists it. Of the holders of a shared lock, each node
/// may name a different one.
fn agreed(reported: &[HeldLock], majority: usize) -> Option<HeldLock> {
    let same = |one: &HeldLock| -> Vec<&HeldLock> {
        let same = |other: &&HeldLock| match one.shared {
            true => other.shared,
            false => !other.shared && one.holder.is_same(&other.holder),
        };
        reported.iter().filter(same).collect()
    };
    let same = reported.iter().map(same).find(|same| same.len() >= majority)?;
    let first = same[0];
    // The lease ends when the first of them does.
    let remaining = same.iter().filter_map(|held| held.holder.remaining).min();
    let holder = Holder { remaining, ..first.holder.clone() };
    let mut agreed = HeldLock { holder, fencing_token: None, ..first.clone() };
    // The greatest number that a majority of the nodes reaches.
    let nth = |mut numbers: Vec<u64>| {
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers[majority - 1]
    };
    let holders = nth(same.iter().map(|held| held.holders.into()).collect());
    agreed.holders = u32::try_from(holders).unwrap_or(u32::MAX);
    agreed.waiting = nth(same.iter().map(|held| held.waiting).collect());
    Some(agreed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn held(key: &str, by: &str, left: u64) -> HeldLock {
        HeldLock::new(key, Holder::from_value(by, Some(Duration::from_secs(left))))
    }

    fn shared(by: &str, holders: u32, waiting: u64) -> HeldLock {
        HeldLock { holders, shared: true, waiting, ..held("s", by, 9) }
    }

    fn agreed_locks(
        lists: impl IntoIterator<Item = Vec<HeldLock>>,
    ) -> Result<Vec<HeldLock>, StoreError> {
        let mut replies = HeldLockLists::of(Quorum::of(5));
        lists.into_iter().for_each(|list| replies.add(Ok(list.into())));
        replies.add(Err(StoreError::new("down")));
        Ok(replies.outcome()?.locks)
    }

    /// Red without: the comparison with `majority`, in `agreed` or in `outcome`.
    #[test]
    fn a_lock_counts_where_a_majority_names_the_same_holder() {
        let (ours, other) = (held("a", "pid=1", 9), held("a", "pid=2", 9));
        let sooner = held("a", "pid=1", 5);
        let all =
            agreed_locks([vec![ours.clone()], vec![sooner.clone()], vec![ours.clone()], vec![]]);
        assert_eq!(all.unwrap(), [sooner], "the lease ends with the first of theirs");
        let split = agreed_locks([vec![ours.clone()], vec![ours.clone()], vec![other], vec![]]);
        assert_eq!(split.unwrap(), []);
        let few = agreed_locks([vec![ours.clone()], vec![ours]]).unwrap_err();
        assert_eq!(few.to_string(), "down");
    }

    /// Red without: the sort in `nth`, or `majority` in it.
    #[test]
    fn so_many_share_it_as_a_majority_has_at_least() {
        let reported = [shared("pid=1", 1, 4), shared("pid=2", 3, 0), shared("pid=3", 2, 2)];
        let agreed = agreed_locks(reported.map(|one| vec![one])).unwrap().remove(0);
        assert_eq!((agreed.holders, agreed.waiting, agreed.shared), (1, 0, true));
        let reported = [shared("pid=1", 3, 4), shared("pid=2", 3, 1), shared("pid=3", 2, 2)];
        let agreed =
            agreed_locks(reported.into_iter().chain([shared("", 0, 0)]).map(|one| vec![one]));
        assert_eq!(agreed.map(|it| (it[0].holders, it[0].waiting)).unwrap(), (2, 1));
    }
}
