//! The wait queue inside the scripts: which claim is next, and how it is granted, by the rules of
//! `docs/queue.md`.

use super::mistake::Mistake;
use super::setting::Setting;
use super::world::{Grant, Notice, World};
use crate::claims::Wrong;

impl Setting {
    /// Grants the locks to the claims that are next. Returns the grant if `asking` is one of them.
    pub(crate) fn serve(
        &self,
        world: &mut World,
        keys: &[usize],
        asking: Option<usize>,
    ) -> Option<Grant> {
        let (mut granted, mut blocked) = (None, Vec::new());
        let mut open = keys.to_vec();
        let mut touched = keys.to_vec();
        while let Some(key) = open.pop() {
            let mut passed_over = 0;
            while let Some(claim) = self.waiter_in(world, key, passed_over) {
                // Nothing becomes free while this runs.
                let admitted = !blocked.contains(&claim) && self.admits_all(world, claim);
                if !admitted {
                    blocked.push(claim);
                }
                if admitted && self.comes_next(world, claim) {
                    touched.extend(self.keys(claim));
                    let unheard = asking != Some(claim) && !self.receives(world, claim);
                    if !unheard {
                        self.check_overtaking(world, claim);
                    }
                    let lease = self.lease_by_message(world, claim);
                    self.leave(world, claim);
                    if asking == Some(claim) {
                        granted = Some(self.take(world, claim, self.ttl));
                    } else if unheard {
                        self.count(world, self.counter(claim));
                    } else {
                        let Grant { token, stale, .. } = self.take(world, claim, lease);
                        let notice = Notice { token, stale, left: lease, old: false };
                        world.claims[claim].notice = Some(notice);
                    }
                    // It has also left other queues.
                    if self.several(claim) && unheard {
                        open.extend(self.keys(claim));
                    }
                } else if self.several(claim)
                    && world.server.keys[key].queue.is_fresh(claim)
                    && self.admits(world, key, self.mode(claim))
                {
                    passed_over += 1;
                } else {
                    break;
                }
            }
        }
        touched.iter().filter(|key| !keys.contains(key)).for_each(|&key| self.secure(world, key));
        granted
    }

    /// Returns whether no living entry is before those of `claim`, except entries that can be
    /// passed over.
    pub(crate) fn comes_next(&self, world: &World, claim: usize) -> bool {
        self.keys(claim).iter().all(|&key| {
            let queue = world.server.keys[key].queue;
            let mut before = queue.before(claim);
            before.all(|other| world.server.records[other] == 0 || queue.is_fresh(other))
        })
    }

    pub(crate) fn is_first(&self, world: &mut World, claim: usize) -> bool {
        let first = |&key: &usize| self.waiter_in(world, key, 0).is_none_or(|head| head == claim);
        self.keys(claim).iter().all(first)
    }

    /// The claim in this place of a queue. Drops entries without a record on the way.
    fn waiter_in(&self, world: &mut World, key: usize, place: usize) -> Option<usize> {
        loop {
            let claim = world.server.keys[key].queue.claims().nth(place)?;
            if world.server.records[claim] > 0 {
                return Some(claim);
            }
            if world.claims[claim].alive > 0 {
                world.record_wrong(Wrong::Forgotten);
            }
            world.server.keys[key].remove(claim);
        }
    }

    /// Queues the claim, or renews its record for a whole life.
    pub(crate) fn enqueue(&self, world: &mut World, claim: usize) {
        if world.server.records[claim] == 0 {
            self.leave(world, claim);
        }
        world.server.records[claim] = self.life;
        world.claims[claim].alive = self.life;
        for &key in self.keys(claim) {
            let it = &mut world.server.keys[key];
            if it.queue.place(claim).is_none() {
                it.queue.append(claim, if self.several(claim) { self.passed_over } else { 0 });
                if it.queue_ends == 0 || !self.makes(Mistake::RecheckProlongsNothing) {
                    it.queue_ends = self.kept;
                }
            }
        }
    }

    /// The lease of a grant by notification: a TTL from the claim's last request on.
    fn lease_by_message(&self, world: &World, claim: usize) -> u8 {
        let silent = self.life.saturating_sub(world.server.records[claim]);
        self.ttl.min(self.ttl.max(self.life) - silent)
    }

    pub(crate) fn leave(&self, world: &mut World, claim: usize) {
        self.keys(claim).iter().for_each(|&key| world.server.keys[key].remove(claim));
        world.server.records[claim] = 0;
        world.claims[claim].alive = 0;
    }
}
