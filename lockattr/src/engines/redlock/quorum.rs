//! How many of the nodes decide.

use crate::store::Sharing;

/// So many nodes there are: the configured ones, whichever process of them is up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quorum {
    nodes: usize,
}

impl Quorum {
    pub(super) fn of(nodes: usize) -> Self {
        Self { nodes }
    }

    /// A majority: any two of them have a node in common.
    pub(super) fn majority(self) -> usize {
        self.nodes / 2 + 1
    }

    /// How many nodes a claim has to hold.
    ///
    /// Each node lets `p` permits be taken, so there are `nodes · p` of them to share out: with a
    /// majority for each holder, three nodes would let three holders have two permits. The least
    /// number of which `p + 1` holders cannot all have enough is what it takes.
    pub(super) fn needed(self, sharing: Sharing) -> usize {
        match sharing {
            Sharing::Exclusive | Sharing::Shared => self.majority(),
            Sharing::Permits(permits) => {
                // A `usize` holds a `u32`.
                let permits = permits as usize;
                (self.nodes * permits / (permits + 1) + 1).max(self.majority())
            }
        }
    }

    /// Whether so many that say no leave too few for `needed`.
    pub(super) fn is_beyond(self, needed: usize, no: usize) -> bool {
        no > self.nodes - needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the nodes share out their permits, one holder more than there are permits never has
    /// enough of them; and fewer nodes would not do.
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
