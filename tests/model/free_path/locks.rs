//! What the scripts read: which claim has a lock, which could have it, and whether its process
//! receives messages.
//!
//! Nothing here changes a lock.

use super::mistake::Mistake;
use super::server::{Form, NEVER};
use super::setting::Setting;
use super::world::World;
use crate::claims::{Mode, Process};

impl Setting {
    /// The connection of the claim's process.
    pub(crate) fn link(&self, claim: usize) -> usize {
        self.process[claim]
    }

    /// Returns whether the claim's process runs and can talk to the server.
    pub(crate) fn talks(&self, world: &World, claim: usize) -> bool {
        let link = world.links[self.link(claim)];
        link.process == Process::Runs && !link.cut
    }

    /// Returns whether a connection receives what is published to the claim's process.
    pub(crate) fn receives(&self, world: &World, claim: usize) -> bool {
        let link = world.links[self.link(claim)];
        link.process != Process::Dead && !link.cut
    }

    pub(crate) fn admits_all(&self, world: &World, claim: usize) -> bool {
        self.keys(claim).iter().all(|&key| self.admits(world, key, self.mode(claim)))
    }

    /// Returns whether a claim of this mode could have the key now, regardless of the queue.
    pub(crate) fn admits(&self, world: &World, key: usize, mode: Mode) -> bool {
        let it = &world.server.keys[key];
        match it.form {
            Form::Absent => true,
            Form::Plain => false,
            Form::Foreign => self.makes(Mistake::ForeverIsOver) && it.expires == NEVER,
            Form::Marked if self.makes(Mistake::LeftFromExpiry) => it.owner == 0,
            Form::Marked if self.makes(Mistake::ReservationIsHeld) => false,
            Form::Marked => it.owner == 0 || it.until == 0,
            Form::Set => {
                let holds = |&of: &usize| it.leases[of] > 0;
                mode.admits((0..self.claims.len()).filter(holds).map(|of| self.mode(of)))
            }
        }
    }
}

pub(crate) fn has_all(world: &World, keys: &[usize], claim: usize) -> bool {
    keys.iter().all(|&key| world.server.keys[key].lease(claim) > 0)
}

pub(crate) fn any_queued(world: &World, keys: &[usize]) -> bool {
    keys.iter().any(|&key| !world.server.keys[key].queue.is_empty())
}
