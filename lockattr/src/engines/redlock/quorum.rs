//! How many nodes must grant a lock.

use crate::store::Sharing;

/// The number of configured nodes, whether up or down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quorum {
    nodes: usize,
}

impl Quorum {
    pub(super) fn of(nodes: usize) -> Self {
        Self { nodes }
    }

    /// A majority: any two majorities have a node in common.
    pub(super) fn majority(self) -> usize {
        self.nodes / 2 + 1
    }

    /// How many nodes must grant a claim.
    ///
    /// Each node grants `p` permits, so there are `nodes · p` in all. With a majority for each
    /// holder, three nodes would let three holders have two permits. The result is the smallest
    /// number that `p + 1` holders cannot all reach.
    pub(super) fn needed(self, sharing: Sharing) -> usize {
        match sharing {
            Sharing::Exclusive | Sharing::Shared => self.majority(),
            Sharing::Permits(permits) => {
                // A `u32` fits into a `usize`.
                let permits = permits as usize;
                (self.nodes * permits / (permits + 1) + 1).max(self.majority())
            }
        }
    }

    /// Whether `no` refusals leave too few nodes for `needed`.
    pub(super) fn is_beyond(self, needed: usize, no: usize) -> bool {
        no > self.nodes - needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the nodes distribute their permits, there are never more holders than permits; and
    /// one node fewer would not suffice.
    #[test]
    fn no_more_holders_than_permits_and_no_node_too_many() {
        for nodes in 1..=9 {
            let quorum = Quorum::of(nodes);
            for permits in 1..=20 {
                let needed = quorum.needed(Sharing::Permits(permits));
                let permits = permits as usize;
                assert!(needed <= nodes && needed * (permits + 1) > nodes * permits);
                let fewer = needed - 1;
                assert!(fewer * (permits + 1) <= nodes * permits || fewer < quorum.majority());
            }
            assert_eq!(quorum.needed(Sharing::Permits(1)), quorum.majority());
            assert_eq!(quorum.needed(Sharing::Exclusive), quorum.majority());
        }
    }
}
