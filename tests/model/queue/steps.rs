//! What can happen next, and which states differ in names only.

use super::setting::Setting;
use super::step::Step;
use super::world::{Key, Reply, World};
use crate::claims::names::Names;
use crate::claims::{CLAIMS, Phase, Process, Wrong};
use crate::search::Model;

impl Model for Setting {
    type State = World;
    type Step = Step;

    fn starts(&self) -> Vec<World> {
        vec![World { faults: self.faults, ..World::default() }]
    }

    fn steps(&self, world: &World) -> Vec<(Step, World)> {
        let mut next = Vec::with_capacity(16);
        for claim in 0..self.claims.len() {
            self.act(world, claim, &mut next);
        }
        self.fail(world, &mut next);
        next.extend(self.tick(world).map(|then| (Step::Tick, then)));
        next
    }

    /// Claims that want the same could exchange names, and only the order of tokens counts.
    fn canonical(&self, mut world: World) -> World {
        self.tidy(&mut world);
        let of_key = |key: &Key, claim: usize| {
            (key.leases[claim], key.queue.fresh(claim), key.queue.place(claim))
        };
        let of_keys = |claim: usize| world.keys.each_ref().map(|key| of_key(key, claim));
        let compare = |one: usize, other: usize| {
            let of_claims = world.claims[one].cmp(&world.claims[other]);
            of_claims.then_with(|| of_keys(one).cmp(&of_keys(other)))
        };
        if let Some(names) = Names::in_order(self.claims, compare) {
            rename(&mut world, names);
        }
        world
    }

    fn wrong(&self, world: &World) -> Option<&'static str> {
        world.wrong.or_else(|| self.wrong_in(world)).map(Wrong::text)
    }
}

impl Setting {
    /// Clears what decides nothing any more.
    fn tidy(&self, world: &mut World) {
        for it in &mut world.claims {
            if it.phase != Phase::Waiting {
                (it.timer, it.notice) = (0, it.notice.filter(|_| it.phase == Phase::Requested));
            }
            if it.phase != Phase::Requested {
                it.reply = Reply::None;
            }
            if !matches!(it.phase, Phase::Requested | Phase::Holding) {
                it.valid = 0;
            }
            if matches!(it.phase, Phase::Holding | Phase::Leaving | Phase::Over) {
                it.unsure = false;
            }
            if it.phase == Phase::Over {
                (it.robbed, it.entered) = (false, false);
            }
            if it.process == Process::Dead {
                it.cut = false;
            }
        }
        rank(world);
    }
}

/// Replaces the tokens by their ranks: 1 for the smallest.
fn rank(world: &mut World) {
    let (mut seen, mut count) = ([0; 5 + 2 * CLAIMS], 0);
    each_token(world, |token| {
        if *token > 0 && !seen[..count].contains(token) {
            seen[count] = *token;
            count += 1;
        }
    });
    let seen = &mut seen[..count];
    seen.sort_unstable();
    each_token(world, |token| {
        let rank = seen.iter().zip(1..).find(|(known, _)| *known == token);
        *token = rank.map_or(0, |(_, rank)| rank);
    });
}

fn each_token(world: &mut World, mut see: impl FnMut(&mut u8)) {
    see(&mut world.counter);
    for key in &mut world.keys {
        see(&mut key.issued);
        see(&mut key.issued_alone);
    }
    for it in &mut world.claims {
        if let Reply::Granted(token) = &mut it.reply {
            see(token);
        }
        if let Some(notice) = &mut it.notice {
            see(&mut notice.token);
        }
    }
}

/// Gives each claim another name.
fn rename(world: &mut World, names: Names) {
    names.arrange(&mut world.claims);
    for key in &mut world.keys {
        names.arrange(&mut key.leases);
        key.queue.rename(names);
    }
}
