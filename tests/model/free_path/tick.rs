//! The passing of time.

use super::mistake::Mistake;
use super::server::{Key, Server};
use super::setting::Setting;
use super::world::{RenewRequest, World};
use crate::claims::{Phase, Process, Wrong, pass};

impl Setting {
    /// Moves everything that expires one tick closer to its end. Returns `None` while a running
    /// process has to ask: a process that is late is one that was stopped.
    pub(crate) fn tick(&self, world: &World) -> Option<World> {
        let due = |claim: usize| {
            let it = &world.claims[claim];
            it.phase == Phase::Waiting && it.timer == 0 && self.talks(world, claim)
        };
        if (0..self.claims.len()).any(due) {
            return None;
        }
        let mut then = *world;
        tick_server(&mut then.server);
        if self.replica && then.behind < self.lag {
            tick_server(&mut then.replica);
            then.behind += 1;
        } else {
            // The replica has caught up in the meantime.
            then = self.replicate(&then).unwrap_or(then);
        }
        if then.intruder != u8::MAX {
            pass(&mut then.intruder);
        }
        for claim in 0..self.claims.len() {
            let runs = then.links[self.link(claim)].process == Process::Runs;
            let it = &mut then.claims[claim];
            pass(&mut it.timer);
            pass(&mut it.valid);
            pass(&mut it.alive);
            pass(&mut it.renewed);
            if let Some(notice) = &mut it.notice {
                pass(&mut notice.left);
            }
            let ends = it.phase == Phase::Holding && it.valid == 0 && runs;
            if ends && !self.makes(Mistake::HandsOffTooLate) {
                it.renewal = RenewRequest::None;
                self.start_leaving(&mut then, claim);
            }
            self.check_place(world, &mut then, claim);
        }
        Some(then)
    }

    /// Checks that a queue that ends contains no claim that asked within its entry's life.
    fn check_place(&self, before: &World, then: &mut World, claim: usize) {
        let lost = |&key: &usize| {
            let was = before.server.keys[key].queue.place(claim).is_some();
            was && then.server.keys[key].queue.place(claim).is_none()
        };
        if then.claims[claim].alive > 0 && self.keys(claim).iter().any(lost) {
            then.record_wrong(Wrong::PlaceLost);
        }
    }
}

fn tick_server(server: &mut Server) {
    server.keys.iter_mut().for_each(Key::tick);
    server.records.iter_mut().for_each(pass);
}
