//! What a claim does once nothing fails any more.

use super::setting::Setting;
use super::world::{Reply, World};
use crate::claims::wait::Waits;
use crate::claims::{Phase, Process};

impl Waits for Setting {
    fn waiters(&self) -> usize {
        self.claims.len()
    }

    fn end_faults(&self, world: &mut World) {
        for claim in 0..self.claims.len() {
            world.claims[claim].late = false;
            if world.claims[claim].cut && world.claims[claim].process == Process::Runs {
                self.reconnect(world, claim);
            }
        }
    }

    fn advance(&self, world: &mut World, claim: usize) -> bool {
        let it = world.claims[claim];
        if it.request {
            self.request_arrives(world, claim);
            return true;
        }
        if !world.talks(claim) {
            return false;
        }
        match (it.phase, it.notice) {
            (Phase::Requested, _) if it.reply == Reply::None => {
                // The reply was lost: its process waits no longer.
                (world.claims[claim].phase, world.claims[claim].timer) = (Phase::Waiting, 0);
            }
            (Phase::Requested, _) => self.receive_reply(world, claim),
            (Phase::Waiting, Some(notice)) => self.receive_grant(world, claim, notice),
            (Phase::Waiting, None) if it.timer == 0 => self.send_request(world, claim),
            (Phase::Holding, _) => world.claims[claim].phase = Phase::Leaving,
            (Phase::Leaving, _) => self.undo(world, claim),
            _ => return false,
        }
        true
    }

    fn is_waiting(&self, world: &World, claim: usize) -> bool {
        world.waits(claim) && world.talks(claim)
    }

    fn later(&self, world: &World) -> Option<World> {
        self.tick(world)
    }
}
