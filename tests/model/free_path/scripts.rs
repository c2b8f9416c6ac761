//! The store's scripts, each of which is one step: `acquire.lua`, `release.lua`, `renew.lua`,
//! `force_release.lua`, and reads.

use super::locks::{any_queued, has_all};
use super::mistake::Mistake;
use super::secure::unmark;
use super::server::Form;
use super::setting::Setting;
use super::world::{Grant, Message, RenewRequest, World};
use crate::claims::names::name;
use crate::claims::{Mode, Wrong};

impl Setting {
    /// Executes a request of `claim` by the script.
    pub(crate) fn acquire(&self, world: &mut World, claim: usize) -> Message {
        let keys = self.keys(claim);
        let adopts = !self.makes(Mistake::AdoptsNothing) && has_all(world, keys, claim);
        let queued = any_queued(world, keys);
        let first = !queued || self.is_first(world, claim);
        if adopts || (first && self.admits_all(world, claim)) {
            if !adopts {
                self.check_overtaking(world, claim);
            }
            let grant = self.take(world, claim, self.ttl);
            if queued {
                self.leave(world, claim);
                if self.mode(claim) != Mode::Exclusive {
                    self.serve(world, keys, None);
                }
            }
            self.secure_all(world, keys);
            return Message::Granted(grant);
        }
        self.enqueue(world, claim);
        let granted = queued.then(|| self.serve(world, keys, Some(claim))).flatten();
        self.check_served(world, keys);
        self.secure_all(world, keys);
        if let Some(grant) = granted {
            return Message::Granted(grant);
        }
        self.check_refusal(world, claim);
        if let Some(notice) = &mut world.claims[claim].notice {
            notice.old = true;
        }
        Message::Refused
    }

    /// Releases what a claim has: its locks, after `after` ticks, and its entries if its process
    /// knows that it may have some. A quiet release does not serve the queue.
    pub(crate) fn release(&self, world: &mut World, claim: usize, after: u8, quiet: bool) {
        let keys = self.keys(claim);
        let (queued, mut last_shared) = (any_queued(world, keys), [false; 2]);
        for &key in keys {
            let it = &mut world.server.keys[key];
            if it.lease(claim) == 0 {
                continue;
            }
            if it.form == Form::Set {
                it.leases[claim] = after;
                it.expires = it.last_lease();
                if it.expires == 0 {
                    it.vanish();
                    last_shared[key] = true;
                }
            } else if self.makes(Mistake::KeepingForgetsQueue)
                && it.form == Form::Marked
                && after > 0
            {
                it.write(Form::Marked, name(claim), after, after);
            } else {
                it.write(Form::Plain, name(claim), 0, after);
            }
        }
        let leaves = world.claims[claim].entered;
        if leaves {
            self.leave(world, claim);
        }
        if !quiet && queued {
            self.serve(world, keys, None);
            self.check_served(world, keys);
        }
        for &key in keys {
            let absent = world.server.keys[key].form == Form::Absent;
            match self.mistake {
                Some(Mistake::QuietLeavesNothing) if quiet && absent => {}
                Some(Mistake::LastSharerLeavesNothing) if last_shared[key] && absent => {}
                Some(Mistake::KeepingForgetsQueue) if after > 0 => {}
                Some(Mistake::LeaverUnmarks) if leaves => unmark(world, key),
                Some(Mistake::LastFreesAnothers) if leaves => delete_marked(world, key),
                _ => self.secure(world, key),
            }
        }
    }

    /// Makes a lease last for `ticks` from now on, unless it lasts longer already.
    pub(crate) fn renew(&self, world: &mut World, claim: usize, ticks: u8) -> RenewRequest {
        let keys = self.keys(claim);
        let marked = |&key: &usize| world.server.keys[key].form == Form::Marked;
        let misread = self.makes(Mistake::MarkedIsLost) && keys.iter().any(marked);
        let has = has_all(world, keys, claim);
        if !has || misread {
            if has && !world.claims[claim].robbed {
                world.record_wrong(Wrong::ReportedLost);
            }
            if self.makes(Mistake::RenewalPrunes) {
                keys.iter().for_each(|&key| prune(world, key));
            }
            return RenewRequest::Lost;
        }
        let longer = |before: u8| match self.makes(Mistake::RenewalShortens) {
            true => ticks,
            false => ticks.max(before),
        };
        for &key in keys {
            let it = &mut world.server.keys[key];
            match it.form {
                Form::Plain => it.expires = longer(it.expires),
                Form::Marked => {
                    it.until = longer(it.until);
                    it.expires = match self.makes(Mistake::RenewalForgetsQueue) {
                        true => it.until,
                        false => it.until.max(it.queue_ends),
                    };
                }
                _ => {
                    it.leases[claim] = longer(it.leases[claim]);
                    it.expires = it.expires.max(ticks);
                }
            }
        }
        RenewRequest::Renewed { replicated: false }
    }

    /// Takes a key from all its holders, which for a shared one are several calls of the script.
    pub(crate) fn force_release(&self, world: &mut World, key: usize) {
        self.rob(world, key);
        world.server.keys[key].vanish();
        self.serve(world, &[key], None);
        self.check_served(world, &[key]);
        self.secure(world, key);
    }

    /// A client reads the holder of a key.
    pub(crate) fn read(&self, world: &mut World, key: usize) {
        if self.makes(Mistake::ReadPrunes) {
            prune(world, key);
        }
    }

    /// Grants the locks for `ttl` ticks, under the next token.
    pub(crate) fn take(&self, world: &mut World, claim: usize, ttl: u8) -> Grant {
        let token = self.count(world, self.counter(claim));
        for &key in self.keys(claim) {
            let it = &mut world.server.keys[key];
            // A lease that it already has may have been extended.
            let left = if self.makes(Mistake::AdoptionShortens) { 0 } else { it.lease(claim) };
            let lease = ttl.max(left);
            if self.mode(claim) == Mode::Exclusive {
                it.write(Form::Plain, name(claim), 0, lease);
            } else {
                if it.form != Form::Set {
                    // It was a reservation, or a lease that is over.
                    it.write(Form::Set, 0, 0, lease);
                }
                it.leases[claim] = lease;
                it.expires = it.last_lease();
            }
        }
        self.note_regained(world, claim);
        let stale = self.is_stale(world, claim, token);
        self.note_acquired(world, claim, token);
        Grant { token, stale, ..Grant::default() }
    }
}

/// The mistake of deleting a marked lock that has no waiters any more but still a holder.
fn delete_marked(world: &mut World, key: usize) {
    let it = &mut world.server.keys[key];
    if it.form == Form::Marked && it.queue.is_empty() {
        it.vanish();
    }
}

/// The mistake of removing expired leases, and the key with the last one.
fn prune(world: &mut World, key: usize) {
    let it = &mut world.server.keys[key];
    if it.form == Form::Set && it.last_lease() == 0 {
        it.vanish();
    }
}
