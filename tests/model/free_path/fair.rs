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

    fn end_faults(&self, world: &mut World) {
        for process in 0..self.claims.len() {
            if world.links[process].cut && world.links[process].process == Process::Runs {
                self.reconnect(world, process);
            }
        }
        if world.server.keys[0].form == Form::Foreign {
            world.server.keys[0].vanish();
        }
        for it in &mut world.claims {
            (it.late_pair, it.late_script) = (0, false);
        }
    }

    fn advance(&self, world: &mut World, claim: usize) -> bool {
        let it = world.claims[claim];
        let sent = matches!(
            it.message,
            Message::Pair | Message::Half(_) | Message::Again(_) | Message::Script
        );
        if sent {
            self.arrive(world, claim);
            return true;
        }
        if !self.talks(world, claim) {
            return false;
        }
        match (it.phase, it.notice) {
            (Phase::Requested, _) if it.message == Message::None => {
                // The reply was lost: its process waits no longer.
                (world.claims[claim].phase, world.claims[claim].timer) = (Phase::Waiting, 0);
            }
            (Phase::Requested, _) => {
                *world = self.replicate(world).unwrap_or(*world);
                if self.has_reply(world, claim) {
                    self.receive_reply(world, claim);
                } else {
                    self.miss_reply(world, claim);
                }
            }
            (Phase::Waiting, Some(notice)) => self.receive_grant(world, claim, notice),
            (Phase::Waiting, None) if it.timer == 0 => self.send_request(world, claim),
            (Phase::Holding, _) => self.start_leaving(world, claim),
            (Phase::Leaving, _) if it.lean => self.release_lean(world, claim),
            (Phase::Leaving, _) => self.undo(world, claim, false),
            _ => return false,
        }
        true
    }

    fn is_waiting(&self, world: &World, claim: usize) -> bool {
        world.waits(claim) && self.talks(world, claim)
    }

    fn later(&self, world: &World) -> Option<World> {
        self.tick(world)
    }
}
