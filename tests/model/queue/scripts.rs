//! The store's scripts, each of which is one step: `acquire.lua`, `release.lua` and
//! `force_release.lua`.

use super::locks::{any_queued, has_all};
use super::setting::{Mistake, Setting};
use super::world::{Notice, Reply, World};
use crate::claims::{CLAIMS, Mode, Wrong};

impl Setting {
    /// Executes a request of `claim`.
    pub(crate) fn acquire(&self, world: &mut World, claim: usize) -> Reply {
        let keys = self.keys(claim);
        let adopts = !self.makes(Mistake::AdoptsNothing) && has_all(world, keys, claim);
        let queued = any_queued(world, keys);
        let first = !queued || self.makes(Mistake::Overtakes) || self.is_first(world, claim);
        if adopts || (first && self.admits_all(world, claim)) {
            if !adopts {
                self.check_overtaking(world, claim);
            }
            self.take(world, claim, self.ttl);
            self.leave(world, claim);
            if self.each_request_serves {
                self.check_served(world, keys);
            }
            return Reply::Granted(world.counter);
        }
        self.enqueue(world, claim);
        let granted = queued.then(|| self.serve(world, keys, Some(claim))).flatten();
        self.check_served(world, keys);
        if let Some(token) = granted {
            return Reply::Granted(token);
        }
        self.check_refusal(world, claim);
        if let Some(notice) = &mut world.claims[claim].notice {
            notice.old = true;
        }
        Reply::Refused
    }

    /// Releases what a claim has: its locks, and its entries if its process knows that it may have
    /// some.
    pub(crate) fn release(&self, world: &mut World, claim: usize) {
        let (keys, token) = (self.keys(claim), world.counter);
        keys.iter().for_each(|&key| world.keys[key].leases[claim] = 0);
        if world.claims[claim].entered {
            self.leave(world, claim);
        }
        if !self.makes(Mistake::ReleaseServesNothing) {
            self.serve(world, keys, None);
        }
        self.check_served(world, keys);
        if self.each_request_serves {
            self.check_those_behind(world, token);
        }
    }

    /// Takes a key from all its holders, which for a shared one are several calls of the script.
    pub(crate) fn force_release(&self, world: &mut World, key: usize) {
        self.rob(world, key);
        self.serve(world, &[key], None);
        self.check_served(world, &[key]);
    }

    /// Takes a key from its holders before their leases end.
    pub(crate) fn rob(&self, world: &mut World, key: usize) {
        for claim in 0..self.claims.len() {
            if std::mem::take(&mut world.keys[key].leases[claim]) > 0 {
                world.claims[claim].robbed = true;
            }
        }
    }

    /// Grants the locks to the claims that are next. Returns the token if `asking` is one of them.
    fn serve(&self, world: &mut World, keys: &[usize], asking: Option<usize>) -> Option<u8> {
        let (mut granted, mut blocked) = (None, Vec::new());
        let mut open = keys.to_vec();
        while let Some(key) = open.pop() {
            let mut passed_over = 0;
            while let Some(claim) = self.waiter_in(world, key, passed_over) {
                // Nothing becomes free while this runs.
                let admitted = !blocked.contains(&claim) && self.admits_all(world, claim);
                if !admitted {
                    blocked.push(claim);
                }
                let first = self.makes(Mistake::OneQueueIsEnough) || self.comes_next(world, claim);
                if admitted && first {
                    let unheard = asking != Some(claim) && !self.receives(world, claim);
                    if !unheard {
                        self.check_overtaking(world, claim);
                    }
                    let lease = self.lease_of(world, claim);
                    self.leave(world, claim);
                    if asking == Some(claim) {
                        self.take(world, claim, self.ttl);
                        granted = Some(world.counter);
                    } else if unheard {
                        world.counter += 1;
                    } else {
                        self.take(world, claim, lease);
                        let notice = Notice { token: world.counter, left: lease, old: false };
                        world.claims[claim].notice = Some(notice);
                    }
                    // It has also left other queues.
                    if self.several(claim) && unheard {
                        open.extend(self.keys(claim));
                    }
                } else if self.several(claim)
                    && world.keys[key].queue.is_fresh(claim)
                    && self.admits(world, key, self.mode(claim))
                {
                    passed_over += 1;
                } else {
                    break;
                }
            }
        }
        granted
    }

    /// Returns whether no living entry is before those of `claim`, except entries that can be
    /// passed over.
    pub(crate) fn comes_next(&self, world: &World, claim: usize) -> bool {
        self.keys(claim).iter().all(|&key| {
            let queue = world.keys[key].queue;
            let mut before = queue.before(claim);
            before.all(|other| world.claims[other].record == 0 || queue.is_fresh(other))
        })
    }

    fn is_first(&self, world: &mut World, claim: usize) -> bool {
        let first = |&key: &usize| self.waiter_in(world, key, 0).is_none_or(|head| head == claim);
        self.keys(claim).iter().all(first)
    }

    /// The claim in this place of a queue. Drops entries without a record on the way.
    fn waiter_in(&self, world: &mut World, key: usize, place: usize) -> Option<usize> {
        loop {
            let claim = world.keys[key].queue.claims().nth(place)?;
            if world.claims[claim].record > 0 {
                return Some(claim);
            }
            if world.claims[claim].alive > 0 {
                world.record_wrong(Wrong::Forgotten);
            }
            world.keys[key].queue.remove(claim);
        }
    }

    fn enqueue(&self, world: &mut World, claim: usize) {
        if world.claims[claim].record == 0 && !self.makes(Mistake::LapsedKeepsPlace) {
            self.leave(world, claim);
        }
        let it = &mut world.claims[claim];
        if it.record == 0 || !self.makes(Mistake::RecheckRenewsNothing) {
            it.record = self.life;
        }
        it.alive = self.life;
        for &key in self.keys(claim) {
            let queue = &mut world.keys[key].queue;
            let before = queue.place(claim);
            if before.is_some() && self.makes(Mistake::RecheckMovesToTheEnd) {
                queue.remove(claim);
            }
            if queue.place(claim).is_none() {
                queue.append(claim, if self.several(claim) { self.passed_over } else { 0 });
            }
            if before.is_some_and(|before| queue.place(claim) > Some(before)) {
                world.record_wrong(Wrong::PlaceLost);
            }
        }
    }

    /// The lease of a grant by notification: a TTL from the claim's last request on.
    fn lease_of(&self, world: &World, claim: usize) -> u8 {
        let silent = self.life.saturating_sub(world.claims[claim].record);
        match self.makes(Mistake::GrantsLastATtl) {
            true => self.ttl,
            false => self.ttl.min(self.ttl.max(self.life) - silent),
        }
    }

    /// Grants the locks for `lease` ticks, under the next token.
    fn take(&self, world: &mut World, claim: usize, lease: u8) {
        world.counter += 1;
        for &key in self.keys(claim) {
            if self.mode(claim) == Mode::Exclusive {
                world.keys[key].leases = [0; CLAIMS];
            }
            world.keys[key].leases[claim] = lease;
        }
        // An earlier notification may still arrive.
        world.claims[claim].robbed &= world.claims[claim].notice.is_some();
    }

    fn leave(&self, world: &mut World, claim: usize) {
        self.keys(claim).iter().for_each(|&key| world.keys[key].queue.remove(claim));
        let it = &mut world.claims[claim];
        (it.record, it.alive) = (0, 0);
    }
}
