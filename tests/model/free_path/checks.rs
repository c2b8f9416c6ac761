//! Checks for what must not happen.

use super::locks::has_all;
use super::server::{Form, Key};
use super::setting::Setting;
use super::world::World;
use crate::claims::{Mode, Phase, Process, Wrong};

impl Setting {
    /// Checks a grant to `claim`: no living claim may be before it in a queue, except a claim for
    /// several keys that can still be passed over, and except where another program disturbed the
    /// order.
    pub(crate) fn check_overtaking(&self, world: &mut World, claim: usize) {
        for &key in self.keys(claim) {
            let it = &world.server.keys[key];
            let before = it.queue.before(claim);
            let mut living = before.filter(|&other| {
                let lasts = world.server.records[other] > 0 && world.claims[other].alive > 0;
                lasts && self.talks(world, other) && !it.queue.is_fresh(other)
            });
            if living.next().is_some() && !it.disturbed {
                world.record_wrong(Wrong::Overtaken);
                return;
            }
        }
    }

    /// Checks a refusal of `claim`: something must be in its way that lives, or lived within an
    /// entry's life.
    pub(crate) fn check_refusal(&self, world: &mut World, claim: usize) {
        if has_all(world, self.keys(claim), claim) {
            world.record_wrong(Wrong::RefusedBySelf);
        }
        let before = |&key: &usize| world.server.keys[key].queue.before(claim);
        let mut before = self.keys(claim).iter().flat_map(before);
        if self.is_free(world, claim) && !before.any(|other| world.claims[other].alive > 0) {
            world.record_wrong(Wrong::RefusedByDead);
        }
    }

    /// Returns whether no process has a lease on the claim's keys that the claim could not share.
    fn is_free(&self, world: &World, claim: usize) -> bool {
        let leased = |&key: &usize| {
            let it = &world.server.keys[key];
            let foreign = it.form == Form::Foreign;
            foreign || (0..self.claims.len()).any(|other| it.lease(other) > 0)
        };
        self.admits_all(world, claim) || !self.keys(claim).iter().any(leased)
    }

    /// Checks that the queues of `keys` were served: no claim in them could have its locks.
    pub(crate) fn check_served(&self, world: &mut World, keys: &[usize]) {
        let mut queued = keys.iter().flat_map(|&key| world.server.keys[key].queue.claims());
        let can_be_served = |claim: usize| {
            let lasts = world.server.records[claim] > 0;
            lasts && self.admits_all(world, claim) && self.comes_next(world, claim)
        };
        if queued.any(can_be_served) {
            world.record_wrong(Wrong::NotServed);
        }
    }

    /// Checks that the token of a new holder is above all those before it.
    pub(crate) fn check_token(&self, world: &mut World, stale: bool) {
        if stale {
            world.record_wrong(Wrong::TokenNotAbove);
        }
    }

    /// What is wrong with a state, however it arose.
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

    /// Returns whether more claims believe that they hold the key than may, by the clocks of their
    /// own processes.
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

    /// Returns whether a claim is over, but the store still has its locks or entries.
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

/// Returns whether a key with waiters is absent, or ends before its queue.
fn lacks(key: &Key) -> bool {
    let foreign = key.disturbed || key.form == Form::Foreign;
    !key.queue.is_empty() && !foreign && (key.form == Form::Absent || key.expires < key.queue_ends)
}
