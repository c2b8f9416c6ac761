//! What can happen next, and which states are the same but for names.

use super::setting::{CLAIMS, Setting};
use super::step::Step;
use super::world::{Answer, Phase, Process, World, Wrong};
use crate::search::Model;

impl Model for Setting {
    type State = World;
    type Step = Step;

    fn starts(&self) -> Vec<World> {
        vec![World { faults: self.faults, ..World::default() }]
    }

    fn steps(&self, world: &World) -> Vec<(Step, World)> {
        let mut next = Vec::new();
        for claim in 0..self.claims.len() {
            self.act(world, claim, &mut next);
        }
        self.fail(world, &mut next);
        next.extend(self.tick(world).map(|then| (Step::Tick, then)));
        next
    }

    /// Claims that want the same could change names, and only the order of tokens counts.
    fn canonical(&self, mut world: World) -> World {
        self.tidy(&mut world);
        // All that a state knows of a claim, without a name in it.
        let known = |claim: usize| {
            let of_keys = world.keys.each_ref();
            let of_keys =
                of_keys.map(|key| (key.leases[claim], key.fresh[claim], key.place(claim)));
            (world.claims[claim], of_keys)
        };
        // Which claim is in which place.
        let mut order: [usize; CLAIMS] = std::array::from_fn(|claim| claim);
        for (first, second) in [(0, 1), (0, 2), (1, 2), (0, 1)] {
            let alike = self.claims.get(first) == self.claims.get(second);
            if alike && known(order[first]) > known(order[second]) {
                order.swap(first, second);
            }
        }
        let mut names = order;
        order.iter().enumerate().for_each(|(place, &claim)| names[claim] = place);
        renamed(&world, &names)
    }

    fn wrong(&self, world: &World) -> Option<&'static str> {
        world.wrong.or_else(|| self.wrong_in(world)).map(|wrong| match wrong {
            Wrong::Conflict => "two hold that must not",
            Wrong::TokenNotAbove => "a token is not above an earlier one",
            Wrong::Overtaken => "a living claim is overtaken",
            Wrong::Forgotten => "a living claim is dropped",
            Wrong::PlaceLost => "a claim loses its place",
            Wrong::RefusedBySelf => "a claim is refused what it has",
            Wrong::RefusedByDead => "a claim is refused because of the dead",
            Wrong::NotServed => "a claim is not served though it could be",
            Wrong::LeftBehind => "something is left behind",
        })
    }
}

impl Setting {
    /// Forgets what decides nothing any more.
    fn tidy(&self, world: &mut World) {
        for it in &mut world.claims {
            if it.phase != Phase::Waiting {
                (it.timer, it.notice) = (0, it.notice.filter(|_| it.phase == Phase::Asking));
            }
            if it.phase != Phase::Asking {
                it.answer = Answer::None;
            }
            if !matches!(it.phase, Phase::Asking | Phase::Holding) {
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

/// The tokens by their order: 1 for the smallest.
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
        if let Answer::Granted(token) = &mut it.answer {
            see(token);
        }
        if let Some(notice) = &mut it.notice {
            see(&mut notice.token);
        }
    }
}

/// The same state, in which each claim has the name that `order` gives it.
fn renamed(world: &World, order: &[usize; CLAIMS]) -> World {
    let mut then = *world;
    for (claim, &other) in order.iter().enumerate() {
        then.claims[other] = world.claims[claim];
        for (key, was) in then.keys.iter_mut().zip(&world.keys) {
            key.leases[other] = was.leases[claim];
            key.fresh[other] = was.fresh[claim];
        }
    }
    for key in &mut then.keys {
        for entry in key.queue.iter_mut().filter(|entry| **entry > 0) {
            // There are few claims.
            *entry = u8::try_from(order[usize::from(*entry) - 1] + 1).unwrap_or(u8::MAX);
        }
    }
    then
}
