//! The fencing counter, and the order of the tokens that it gives.

use super::mistake::Mistake;
use super::setting::Setting;
use super::world::{Message, World};
use crate::claims::{Mode, Phase};

impl Setting {
    /// Counts as a script does: by the clock, and never behind the last token. There is less than
    /// one acquisition per microsecond, so the clock is ahead of every token ever given.
    pub(crate) fn count(&self, world: &mut World, counter: usize) -> u8 {
        let next = world.server.counters[counter] + 1;
        let token = match self.makes(Mistake::IgnoresTheClock) {
            true => next,
            false => next.max(world.clocks[counter] + 1),
        };
        given(world, counter, token)
    }

    /// `claim` has its locks again, if they were taken from it before. It stays `robbed` while it
    /// still believes in an earlier lease, or may yet. A holder can also be served, through an
    /// entry that a replica still has.
    pub(crate) fn note_regained(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        let granted = matches!(it.message, Message::Granted(_));
        it.robbed &= it.notice.is_some() || it.phase == Phase::Holding || granted;
    }

    /// Returns whether a token for `claim` is not above all those under which the same keys were
    /// acquired before by claims that it could not share with. Permits are not ordered.
    pub(crate) fn is_stale(&self, world: &World, claim: usize, token: u8) -> bool {
        self.keys(claim).iter().any(|&key| match self.mode(claim) {
            Mode::Exclusive => token <= world.top[key],
            Mode::Shared => token <= world.top_alone[key],
            Mode::Permits(_) => false,
        })
    }

    /// `claim` has its locks now, under this token.
    pub(crate) fn note_acquired(&self, world: &mut World, claim: usize, token: u8) {
        for &key in self.keys(claim) {
            world.top[key] = world.top[key].max(token);
            if self.mode(claim) == Mode::Exclusive {
                world.top_alone[key] = world.top_alone[key].max(token);
            }
        }
        for other in (0..self.claims.len()).filter(|&other| other != claim) {
            let meet = self.keys(other).iter().any(|key| self.keys(claim).contains(key));
            world.claims[other].passed |= meet;
        }
        world.claims[claim].passed = false;
    }
}

/// A bare `INCR`, which does not read the clock.
pub(crate) fn increment(world: &mut World, counter: usize) -> u8 {
    let next = world.server.counters[counter] + 1;
    given(world, counter, next)
}

fn given(world: &mut World, counter: usize, token: u8) -> u8 {
    world.server.counters[counter] = token;
    let clock = &mut world.clocks[counter];
    *clock = token.max(*clock);
    token
}
