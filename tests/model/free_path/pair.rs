//! The plain commands of the free path, each of which is one step: `SET … NX PX`, `INCR`, and the
//! server's own compare-and-delete.

use super::count::increment;
use super::locks::has_all;
use super::mistake::Mistake;
use super::server::Form;
use super::setting::Setting;
use super::world::{FLOOR, Grant, Message, Set, World};
use crate::claims::names::name;

impl Setting {
    /// `SET NX PX`, for a claim of one key. Returns whether it acquired the lock.
    pub(crate) fn set(&self, world: &mut World, claim: usize) -> bool {
        let key = self.keys(claim)[0];
        if world.server.keys[key].form != Form::Absent {
            return false;
        }
        if !world.server.keys[key].disturbed {
            self.check_overtaking(world, claim);
        }
        world.server.keys[key].write(Form::Plain, name(claim), 0, self.ttl);
        self.note_regained(world, claim);
        true
    }

    /// `INCR` after the `SET`. Returns what the replies of both mean to the process.
    pub(crate) fn increment(&self, world: &mut World, claim: usize, set: Set) -> Message {
        let token = increment(world, self.counter(claim));
        let least = match self.makes(Mistake::SeenUnchecked) {
            true => FLOOR - 1,
            false => world.claims[claim].seen.max(FLOOR - 1),
        };
        let counts = token > least || self.makes(Mistake::TokensUnchecked);
        let taken = match set {
            Set::Done => true,
            Set::Refused => self.makes(Mistake::IgnoresTheSet),
            Set::Redirected => false,
        };
        let mut grant = Grant { token, bare: true, ..Grant::default() };
        if set == Set::Redirected && counts && self.makes(Mistake::RetriesHalf) {
            world.claims[claim].passed = false;
            return Message::Again(grant);
        }
        if !taken || !counts {
            return Message::Void { error: set == Set::Redirected };
        }
        grant.stale = self.is_stale(world, claim, token);
        // A claim that has lost the lock by now does not affect those that acquired it.
        if has_all(world, self.keys(claim), claim) {
            self.note_acquired(world, claim, token);
        }
        Message::Granted(grant)
    }

    /// The mistaken retry of a redirected `SET`.
    pub(crate) fn set_again(&self, world: &mut World, claim: usize, grant: Grant) -> Message {
        if !self.set(world, claim) {
            return Message::Void { error: false };
        }
        // The token is older than all that were given since.
        let stale = world.claims[claim].passed;
        self.note_acquired(world, claim, grant.token);
        Message::Granted(Grant { stale, ..grant })
    }

    /// The compare-and-delete of a claim for one key. Returns whether the key had the plain value.
    pub(crate) fn delete(&self, world: &mut World, claim: usize) -> bool {
        let it = &mut world.server.keys[self.keys(claim)[0]];
        let deletes = it.form == Form::Plain && it.owner == name(claim);
        if deletes {
            it.vanish();
        }
        deletes
    }
}
