//! What must not happen.

use super::locks::has_all;
use super::server::{Form, Key};
use super::setting::Setting;
use super::world::World;
use crate::claims::{Mode, Phase, Process, Wrong};

impl Setting {
    /// `claim` is about to be granted: no claim that lives may be before it in a queue, but for one
    /// that waits for several keys and can be passed over still, and for those that have no order because another
    /// program had the lock.
    pub(crate) fn check_overtaking(&self, world: &mut World, claim: usize) {
        for &key in self.keys(claim) {
            let it = &world.server.keys[key];
            let before = it.queue.before(claim);
            let mut living = before.filter(|&other| {
                let lasts = world.server.records[other] > 0 && world.claims[other].alive > 0;
                lasts && self.talks(world, other) && !it.queue.is_fresh(other)
            });
            if living.next().is_some() && !it.disturbed {
                world.blame(Wrong::Overtaken);
                return;
            }
        }
    }

    /// `claim` was refused: something has to be in its way that lives, or lived an entry's life ago.
    pub(crate) fn check_refusal(&self, world: &mut World, claim: usize) {
        if has_all(world, self.keys(claim), claim) {
            world.blame(Wrong::RefusedBySelf);
        }
        let before = |&key: &usize| world.server.keys[key].queue.before(claim);
        let mut before = self.keys(claim).iter().flat_map(before);
        if self.is_free(world, claim) && !before.any(|other| world.claims[other].alive > 0) {
            world.blame(Wrong::RefusedByDead);
        }
    }

    /// No process has a lease on the claim's keys that it could not share.
    fn is_free(&self, world: &World, claim: usize) -> bool {
        let leased = |&key: &usize| {
            let it = &world.server.keys[key];
            let foreign = it.form == Form::Foreign;
            foreign || (0..self.claims.len()).any(|other| it.lease(other) > 0)
        };
        self.admits_all(world, claim) || !self.keys(claim).iter().any(leased)
    }

    /// The queues of `keys` have been served: none begins with a claim that could have its locks.
    pub(crate) fn check_served(&self, world: &mut World, keys: &[usize]) {
        let mut queued = keys.iter().flat_map(|&key| world.server.keys[key].queue.claims());
        let can_be_served = |claim: usize| {
            let lasts = world.server.records[claim] > 0;
            lasts && self.admits_all(world, claim) && self.comes_next(world, claim)
        };
        if queued.any(can_be_served) {
            world.blame(Wrong::NotServed);
        }
    }

    /// The claim begins to hold: its number has to be above all those before it.
    pub(crate) fn check_token(&self, world: &mut World, stale: bool) {
        if stale {
            world.blame(Wrong::TokenNotAbove);
        }
    }

    /// What is wrong with a state, however it came to be.
    pub(crate) fn wrong_in(&self, world: &World) -> Option<Wrong> {
        let conflict = (0..world.server.keys.len()).any(|key| self.conflict_over(world, key));
        if conflict {
            return Some(Wrong::Conflict);
        }
        if self.checks_absence && world.server.keys.iter().any(lacks) {
            return Some(Wrong::Absent);
        }
        let left = (0..self.claims.len()).any(|claim| self.is_left(world, claim));
        (left && !self.may_leave).then_some(Wrong::LeftBehind)
    }

    /// Whether more believe that they hold the key than may, by the clocks of their own processes.
    fn conflict_over(&self, world: &World, key: usize) -> bool {
        let holds = |claim: usize| {
            let it = &world.claims[claim];
            let holds = it.phase == Phase::Holding && it.valid > 0 && !it.robbed;
            holds && self.keys(claim).contains(&key)
        };
        let holders = (0..self.claims.len()).filter(|&claim| holds(claim));
        if key == 0 && world.intruder > 0 && holders.clone().next().is_some() {
            return true;
        }
        Mode::conflict(holders.map(|claim| self.mode(claim)))
    }

    /// Whether a claim is over, and the store does not know it.
    fn is_left(&self, world: &World, claim: usize) -> bool {
        let settled = world.claims[claim].phase == Phase::Over
            && world.links[self.link(claim)].process != Process::Dead;
        let keeps = self.claims[claim].keeps > 0;
        let has = |&key: &usize| {
            let it = &world.server.keys[key];
            (it.lease(claim) > 0 && !keeps) || it.queue.place(claim).is_some()
        };
        settled && (world.server.records[claim] > 0 || self.keys(claim).iter().any(has))
    }
}

/// Whether a key with waiters is absent, or ends before its queue.
fn lacks(key: &Key) -> bool {
    let foreign = key.disturbed || key.form == Form::Foreign;
    !key.queue.is_empty() && !foreign && (key.form == Form::Absent || key.expires < key.queue_ends)
}
