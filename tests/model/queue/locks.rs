//! What the scripts read: which claim has a lock, which could have it, and whether its process
//! receives messages.

use super::setting::Setting;
use super::world::World;
use crate::claims::{Mode, Process};

impl Setting {
    /// Returns whether a connection receives what is published to the claim's process.
    pub(crate) fn receives(&self, world: &World, claim: usize) -> bool {
        let it = &world.claims[claim];
        self.monitored || (it.process != Process::Dead && !it.cut)
    }

    pub(crate) fn admits_all(&self, world: &World, claim: usize) -> bool {
        self.keys(claim).iter().all(|&key| self.admits(world, key, self.mode(claim)))
    }

    /// Returns whether a claim of this mode could have the key now, regardless of the queue.
    pub(crate) fn admits(&self, world: &World, key: usize, mode: Mode) -> bool {
        let holds = |&of: &usize| world.keys[key].leases[of] > 0;
        mode.admits((0..self.claims.len()).filter(holds).map(|of| self.mode(of)))
    }
}

pub(crate) fn has_all(world: &World, keys: &[usize], claim: usize) -> bool {
    keys.iter().all(|&key| world.keys[key].leases[claim] > 0)
}

pub(crate) fn any_queued(world: &World, keys: &[usize]) -> bool {
    keys.iter().any(|&key| !world.keys[key].queue.is_empty())
}
