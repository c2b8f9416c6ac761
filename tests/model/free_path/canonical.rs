//! Decides which states are the same: claims that want the same could exchange names, and of
//! tokens only the order counts, as far as a token can still be given a second time.

use super::server::{Key, Server};
use super::setting::Setting;
use super::world::{FLOOR, Grant, Message, RenewRequest, World};
use crate::claims::names::{Names, name};
use crate::claims::{CLAIMS, KEYS, Phase, Process};

impl Setting {
    /// Returns the representative of all states that differ from this one in names only.
    pub(crate) fn one_of_alike(&self, mut world: World) -> World {
        self.tidy(&mut world);
        self.lower_tokens(&mut world);
        // Claims of one process are distinguished by their process.
        let apart = (0..self.claims.len()).all(|claim| self.process[claim] == claim);
        if !apart {
            return world;
        }
        let of_key = |key: &Key, claim: usize| {
            let owns = key.owner == name(claim);
            (owns, key.leases[claim], key.queue.fresh(claim), key.queue.place(claim))
        };
        let of_server = |server: &Server, claim: usize| {
            (server.keys.each_ref().map(|key| of_key(key, claim)), server.records[claim])
        };
        let compare = |one: usize, other: usize| {
            let of_claims = world.claims[one].cmp(&world.claims[other]);
            let of_links = || world.links[one].cmp(&world.links[other]);
            let of = |server| of_server(server, one).cmp(&of_server(server, other));
            of_claims
                .then_with(of_links)
                .then_with(|| of(&world.server))
                .then_with(|| of(&world.replica))
        };
        if let Some(names) = Names::in_order(self.claims, compare) {
            rename(&mut world, names);
        }
        world
    }

    /// Clears what decides nothing any more.
    fn tidy(&self, world: &mut World) {
        if world.faults == 0 {
            // The replica will not take over any more.
            (world.replica, world.behind) = (Server::default(), 0);
        }
        for it in &mut world.claims {
            if it.phase != Phase::Waiting {
                (it.timer, it.notice) = (0, it.notice.filter(|_| it.phase == Phase::Requested));
            }
            if it.phase != Phase::Requested {
                it.message = Message::None;
            }
            if !matches!(it.message, Message::Pair | Message::Half(_)) {
                it.seen = 0;
            }
            if !matches!(it.phase, Phase::Requested | Phase::Holding) {
                it.valid = 0;
            }
            if it.phase != Phase::Holding {
                (it.renewal, it.renewed) = (RenewRequest::None, 0);
                (it.renewals, it.hand_offs) = (0, 0);
            }
            it.passed &= it.hand_offs > 0 || matches!(it.message, Message::Again(_));
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
                let first = matches!(it.phase, Phase::New | Phase::Requested | Phase::Waiting);
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

    /// Makes all tokens equal that their counter cannot reach again. Without a replica it reaches
    /// none again: the counter is lost whole, or ahead of all.
    fn lower_tokens(&self, world: &mut World) {
        let real = |token: u8| token >= FLOOR;
        for counter in 0..=usize::from(self.slots) {
            let counters = [world.server.counters[counter], world.replica.counters[counter]];
            let least = counters.into_iter().filter(|&at| real(at)).min();
            let least = least.filter(|_| self.replica).unwrap_or(world.clocks[counter]);
            self.each_token(world, counter, |token| {
                *token = if real(*token) { FLOOR + token.saturating_sub(least) } else { 0 };
            });
        }
        // A seen token that the counter has already reached decides nothing.
        let of_links = world.links.iter_mut().flat_map(|link| &mut link.seen);
        for seen in of_links.chain(world.claims.iter_mut().map(|it| &mut it.seen)) {
            *seen = if *seen > FLOOR { *seen } else { 0 };
        }
    }

    /// Visits every token that a counter has given.
    fn each_token(&self, world: &mut World, counter: usize, mut see: impl FnMut(&mut u8)) {
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
                Message::Granted(Grant { token, .. }) | Message::Again(Grant { token, .. }) => {
                    see(token);
                }
                _ => {}
            }
            if let Some(notice) = &mut it.notice {
                see(&mut notice.token);
            }
        }
    }
}

/// Gives each claim another name.
fn rename(world: &mut World, names: Names) {
    names.arrange(&mut world.claims);
    names.arrange(&mut world.links);
    for server in [&mut world.server, &mut world.replica] {
        names.arrange(&mut server.records);
        for key in &mut server.keys {
            names.rename(&mut key.owner);
            names.arrange(&mut key.leases);
            key.queue.rename(names);
        }
    }
}
