//! How long those wait that live, once nothing goes wrong any more.

use super::setting::Setting;
use super::world::{Answer, Phase, Process, World};
use crate::search::Explored;

/// No wait is that long, or it has no end.
pub(crate) const ENDLESS: u8 = 40;

impl Setting {
    /// How many ticks pass until each living waiter of `world` has had its locks: the others stay as
    /// they are, stopped or dead, and holders are done at once.
    pub(crate) fn wait_from(&self, mut world: World) -> u8 {
        for claim in 0..self.claims.len() {
            world.claims[claim].late = false;
            if world.claims[claim].cut && world.claims[claim].process == Process::Runs {
                self.reconnect(&mut world, claim);
            }
        }
        for ticks in 0..ENDLESS {
            while (0..self.claims.len()).any(|claim| self.goes_on(&mut world, claim)) {}
            let waits = |claim| world.waits(claim) && world.talks(claim);
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
        if it.question {
            self.question_arrives(world, claim);
            return true;
        }
        if !world.talks(claim) {
            return false;
        }
        match (it.phase, it.notice) {
            (Phase::Asking, _) if it.answer == Answer::None => {
                // It was lost: its process waits for it no more.
                (world.claims[claim].phase, world.claims[claim].timer) = (Phase::Waiting, 0);
            }
            (Phase::Asking, _) => self.hear(world, claim),
            (Phase::Waiting, Some(notice)) => self.hear_grant(world, claim, notice),
            (Phase::Waiting, None) if it.timer == 0 => self.ask(world, claim),
            (Phase::Holding, _) => world.claims[claim].phase = Phase::Leaving,
            (Phase::Leaving, _) => self.undo(world, claim),
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
