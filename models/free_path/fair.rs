//! How long those wait that live, once nothing goes wrong any more.

use super::server::Form;
use super::setting::Setting;
use super::world::{Message, Phase, Process, World};
use crate::search::Explored;

/// No wait is that long, or it has no end.
pub(crate) const ENDLESS: u8 = 40;

impl Setting {
    /// How many ticks pass until each living waiter of `world` has had its locks: the others stay as
    /// they are, stopped or dead, and holders are done at once.
    fn wait_from(&self, mut world: World) -> u8 {
        for process in 0..self.claims.len() {
            if world.links[process].cut && world.links[process].process == Process::Runs {
                self.reconnect(&mut world, process);
            }
        }
        if world.server.keys[0].form == Form::Foreign {
            world.server.keys[0].vanish();
        }
        for it in &mut world.claims {
            (it.late_pair, it.late_question) = (0, false);
        }
        for ticks in 0..ENDLESS {
            while (0..self.claims.len()).any(|claim| self.goes_on(&mut world, claim)) {}
            let waits = |claim| world.waits(claim) && self.talks(&world, claim);
            if !(0..self.claims.len()).any(waits) {
                return ticks;
            }
            world = self.tick(&world).unwrap_or(world);
        }
        ENDLESS
    }

    /// The next step of a claim that makes one without a tick.
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
                // It was lost: its process waits for it no more.
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
}

impl Explored<'_, Setting> {
    /// The longest wait from any state.
    pub(crate) fn longest_wait(&self, setting: &Setting) -> u8 {
        let mut longest = 0;
        self.some(|world| {
            longest = longest.max(setting.wait_from(*world));
            false
        });
        longest
    }
}
