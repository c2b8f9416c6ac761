//! What a claim does once nothing fails any more.

use super::server::Form;
use super::setting::Setting;
use super::world::{Message, World};
use crate::claims::wait::Waits;
use crate::claims::{Phase, Process};

impl Waits for Setting {
    fn waiters(&self) -> usize {
        self.claims.len()
    }

    fn calm(&self, world: &mut World) {
        for process in 0..self.claims.len() {
            if world.links[process].cut && world.links[process].process == Process::Runs {
                self.reconnect(world, process);
            }
        }
        if world.server.keys[0].form == Form::Foreign {
            world.server.keys[0].vanish();
        }
        for it in &mut world.claims {
            (it.late_pair, it.late_question) = (0, false);
        }
    }

    fn goes_on(&self, world: &mut World, claim: usize) -> bool {
        let it = world.claims[claim];
        let sent = matches!(
            it.message,
            Message::Pair | Message::Half(_) | Message::Again(_) | Message::Question
        );
        if sent {
            self.arrive(world, claim);
            return true;
        }
        if !self.talks(world, claim) {
            return false;
        }
        match (it.phase, it.notice) {
            (Phase::Asking, _) if it.message == Message::None => {
                // The reply was lost: its process waits no longer.
                (world.claims[claim].phase, world.claims[claim].timer) = (Phase::Waiting, 0);
            }
            (Phase::Asking, _) => {
                *world = self.replicate(world).unwrap_or(*world);
                if self.is_answered(world, claim) {
                    self.hear(world, claim);
                } else {
                    self.hear_nothing(world, claim);
                }
            }
            (Phase::Waiting, Some(notice)) => self.hear_grant(world, claim, notice),
            (Phase::Waiting, None) if it.timer == 0 => self.ask(world, claim),
            (Phase::Holding, _) => self.start_leaving(world, claim),
            (Phase::Leaving, _) if it.lean => self.give_back(world, claim),
            (Phase::Leaving, _) => self.undo(world, claim, false),
            _ => return false,
        }
        true
    }

    fn still_waits(&self, world: &World, claim: usize) -> bool {
        world.waits(claim) && self.talks(world, claim)
    }

    fn later(&self, world: &World) -> Option<World> {
        self.tick(world)
    }
}
