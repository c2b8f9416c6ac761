//! Checks for what must not happen.

use super::locks::has_all;
use super::setting::Setting;
use super::world::World;
use crate::claims::{Mode, Phase, Process, Wrong};

impl Setting {
    /// Checks a grant to `claim`: no living claim may be before it in a queue, except a claim for
    /// several keys that can still be passed over.
    pub(crate) fn check_overtaking(&self, world: &mut World, claim: usize) {
        for &key in self.keys(claim) {
            let queue = world.keys[key].queue;
            let before = queue.before(claim);
            let mut living = before.filter(|&other| {
                let it = &world.claims[other];
                it.record > 0 && it.alive > 0 && world.talks(other) && !queue.is_fresh(other)
            });
            if living.next().is_some() {
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
        let before = |&key: &usize| world.keys[key].queue.before(claim);
        let mut before = self.keys(claim).iter().flat_map(before);
        if self.admits_all(world, claim) && !before.any(|other| world.claims[other].alive > 0) {
            world.record_wrong(Wrong::RefusedByDead);
        }
    }

    /// Checks that the queues of `keys` were served: no claim in them could have its locks.
    pub(crate) fn check_served(&self, world: &mut World, keys: &[usize]) {
        let mut queued = keys.iter().flat_map(|&key| world.keys[key].queue.claims());
        if queued.any(|claim| self.can_be_served(world, claim)) {
            world.record_wrong(Wrong::NotServed);
        }
    }

    /// Checks the same for all keys of the claims that were granted a token after this `token`.
    pub(crate) fn check_those_behind(&self, world: &mut World, token: u8) {
        for claim in 0..self.claims.len() {
            if world.claims[claim].notice.is_some_and(|notice| notice.token > token) {
                self.check_served(world, self.keys(claim));
            }
        }
    }

    fn can_be_served(&self, world: &World, claim: usize) -> bool {
        let lasts = world.claims[claim].record > 0;
        lasts && self.admits_all(world, claim) && self.comes_next(world, claim)
    }

    /// `claim` begins to hold under this token, which must be above those of all earlier holders
    /// that it could not share with. Permits are not ordered.
    pub(crate) fn check_token(&self, world: &mut World, claim: usize, token: u8) {
        let mode = self.mode(claim);
        for &key in self.keys(claim) {
            let it = &mut world.keys[key];
            let above = match mode {
                Mode::Exclusive => it.issued,
                Mode::Shared => it.issued_alone,
                Mode::Permits(_) => continue,
            };
            it.issued = it.issued.max(token);
            if mode == Mode::Exclusive {
                it.issued_alone = it.issued_alone.max(token);
            }
            if token <= above && !world.claims[claim].robbed {
                world.record_wrong(Wrong::TokenNotAbove);
            }
        }
    }

    /// What is wrong with a state, however it arose.
    pub(crate) fn wrong_in(&self, world: &World) -> Option<Wrong> {
        let holds = |claim: usize, key: usize| {
            let it = &world.claims[claim];
            it.phase == Phase::Holding
                && it.valid > 0
                && !it.robbed
                && self.keys(claim).contains(&key)
        };
        for key in 0..world.keys.len() {
            let holders = (0..self.claims.len()).filter(|&claim| holds(claim, key));
            if Mode::conflict(holders.map(|claim| self.mode(claim))) {
                return Some(Wrong::Conflict);
            }
        }
        (0..self.claims.len()).find_map(|claim| {
            let it = &world.claims[claim];
            let settled = it.phase == Phase::Over && it.process != Process::Dead;
            let has = |&key: &usize| {
                world.keys[key].leases[claim] > 0 || world.keys[key].queue.place(claim).is_some()
            };
            let left = it.record > 0 || self.keys(claim).iter().any(has);
            (settled && left && !self.may_leave).then_some(Wrong::LeftBehind)
        })
    }
}
