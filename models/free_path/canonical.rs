//! Which states are the same: claims that want the same could change names, and of the numbers only the order
//! counts, as far as a number can still be given a second time.

use super::server::{Server, name};
use super::setting::{CLAIMS, KEYS, Setting};
use super::world::{FLOOR, Grant, Message, Phase, Process, Renewal, World};

impl Setting {
    /// The one state that stands for all those which differ from this one in names only.
    pub(crate) fn one_of_alike(&self, mut world: World) -> World {
        self.tidy(&mut world);
        self.lower_numbers(&mut world);
        // Claims of one process are known by their process.
        let apart = (0..self.claims.len()).all(|claim| self.process[claim] == claim);
        if !apart {
            return world;
        }
        // All that a state knows of a claim, without a name in it.
        let known = |claim: usize| {
            let of_server = |server: &Server| {
                let of_keys = server.keys.each_ref().map(|key| {
                    let owns = key.owner == name(claim);
                    (owns, key.leases[claim], key.fresh[claim], key.place(claim))
                });
                (of_keys, server.records[claim])
            };
            let servers = (of_server(&world.server), of_server(&world.replica));
            (world.claims[claim], world.links[claim], servers)
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

    /// Forgets what decides nothing any more.
    fn tidy(&self, world: &mut World) {
        if world.faults == 0 {
            // It takes nobody's place any more.
            (world.replica, world.behind) = (Server::default(), 0);
        }
        for it in &mut world.claims {
            if it.phase != Phase::Waiting {
                (it.timer, it.notice) = (0, it.notice.filter(|_| it.phase == Phase::Asking));
            }
            if it.phase != Phase::Asking {
                it.message = Message::None;
            }
            if !matches!(it.message, Message::Pair | Message::Half(_)) {
                it.seen = 0;
            }
            if !matches!(it.phase, Phase::Asking | Phase::Holding) {
                it.valid = 0;
            }
            if it.phase != Phase::Holding {
                (it.renewal, it.renewed) = (Renewal::None, 0);
                (it.renewals, it.hand_overs) = (0, 0);
            }
            it.passed &= it.hand_overs > 0 || matches!(it.message, Message::Again(_));
            it.lean &= it.phase == Phase::Leaving;
            if matches!(it.phase, Phase::Holding | Phase::Leaving | Phase::Over) {
                it.unsure = false;
            }
            if it.phase == Phase::Over {
                (it.robbed, it.entered) = (false, false);
            }
        }
        for process in 0..CLAIMS {
            let may_ask = |claim: usize| {
                let it = &world.claims[claim];
                let first = matches!(it.phase, Phase::NotAsked | Phase::Asking | Phase::Waiting);
                self.is_plain(claim) && first && !it.entered
            };
            let may_ask = self.of_process(process).any(may_ask);
            let link = &mut world.links[process];
            if !may_ask || link.process == Process::Dead {
                (link.raised, link.seen) = ([false; KEYS], [0; KEYS]);
            }
            link.cut &= link.process != Process::Dead;
        }
    }

    /// Numbers that their counter comes to no more are one. Without a replica none does: it is lost whole, or ahead of
    /// all.
    fn lower_numbers(&self, world: &mut World) {
        let real = |number: u8| number >= FLOOR;
        for counter in 0..=usize::from(self.slots) {
            let counters = [world.server.counters[counter], world.replica.counters[counter]];
            let least = counters.into_iter().filter(|&at| real(at)).min();
            let least = least.filter(|_| self.replica).unwrap_or(world.clocks[counter]);
            self.each_number(world, counter, |number| {
                *number = if real(*number) { FLOOR + number.saturating_sub(least) } else { 0 };
            });
        }
        // What a counter is at already says nothing.
        let of_links = world.links.iter_mut().flat_map(|link| &mut link.seen);
        for seen in of_links.chain(world.claims.iter_mut().map(|it| &mut it.seen)) {
            *seen = if *seen > FLOOR { *seen } else { 0 };
        }
    }

    /// Every number that a counter has given.
    fn each_number(&self, world: &mut World, counter: usize, mut see: impl FnMut(&mut u8)) {
        see(&mut world.server.counters[counter]);
        see(&mut world.replica.counters[counter]);
        see(&mut world.clocks[counter]);
        let counts = |key: &usize| !self.slots || *key == counter;
        for key in (0..KEYS).filter(counts) {
            see(&mut world.top[key]);
            see(&mut world.top_alone[key]);
        }
        world.links.iter_mut().for_each(|link| see(&mut link.seen[counter]));
        for claim in (0..self.claims.len()).filter(|&claim| self.counter(claim) == counter) {
            let it = &mut world.claims[claim];
            see(&mut it.seen);
            match &mut it.message {
                Message::Granted(Grant { number, .. }) | Message::Again(Grant { number, .. }) => {
                    see(number);
                }
                _ => {}
            }
            if let Some(notice) = &mut it.notice {
                see(&mut notice.number);
            }
        }
    }
}

/// The same state, in which each claim has the name that `order` gives it.
fn renamed(world: &World, order: &[usize; CLAIMS]) -> World {
    let mut then = *world;
    let renamed = |entry: &mut u8| {
        if *entry > 0 {
            *entry = name(order[usize::from(*entry) - 1]);
        }
    };
    for (claim, &other) in order.iter().enumerate() {
        then.claims[other] = world.claims[claim];
        then.links[other] = world.links[claim];
    }
    for (server, was) in [(&mut then.server, &world.server), (&mut then.replica, &world.replica)] {
        for (claim, &other) in order.iter().enumerate() {
            server.records[other] = was.records[claim];
            for (key, was) in server.keys.iter_mut().zip(&was.keys) {
                key.leases[other] = was.leases[claim];
                key.fresh[other] = was.fresh[claim];
            }
        }
        for key in &mut server.keys {
            renamed(&mut key.owner);
            key.queue.iter_mut().for_each(renamed);
        }
    }
    then
}
