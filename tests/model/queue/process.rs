//! What a process does, and what becomes of the messages between it and the store.

use super::setting::{Mistake, Setting};
use super::step::Step;
use super::world::{Answer, Notice, World};
use crate::claims::{Phase, Process, pass};

impl Setting {
    /// The steps of one claim and of its messages, without a fault.
    pub(crate) fn act(&self, world: &World, claim: usize, next: &mut Vec<(Step, World)>) {
        let it = world.claims[claim];
        let mut add = |step, change: &dyn Fn(&mut World)| {
            let mut then = *world;
            change(&mut then);
            next.push((step, then));
        };
        if it.question {
            add(Step::Arrives(claim), &|then| self.question_arrives(then, claim));
        }
        if it.late {
            add(Step::ArrivesLate(claim), &|then| self.late_question_arrives(then, claim));
        }
        if it.process == Process::Stopped {
            add(Step::Resumes(claim), &|then| then.claims[claim].process = Process::Runs);
        }
        if it.process != Process::Runs {
            return;
        }
        if it.cut {
            add(Step::Reconnects(claim), &|then| self.reconnect(then, claim));
        }
        if world.waits(claim) && self.claims[claim].gives_up {
            add(Step::GivesUp(claim), &|then| self.give_up(then, claim));
        }
        match it.phase {
            Phase::NotAsked | Phase::Waiting if !it.cut && it.timer == 0 => {
                add(Step::Asks(claim), &|then| self.ask(then, claim));
            }
            Phase::Asking if it.answer != Answer::None => {
                add(Step::Hears(claim), &|then| self.hear(then, claim));
            }
            Phase::Holding => {
                add(Step::Releases(claim), &|then| then.claims[claim].phase = Phase::Leaving);
            }
            Phase::Leaving if !it.cut => {
                add(Step::IsUndone(claim), &|then| self.undo(then, claim));
            }
            _ => {}
        }
        if let (Phase::Waiting, Some(notice)) = (it.phase, it.notice) {
            add(Step::HearsGrant(claim), &|then| self.hear_grant(then, claim, notice));
        }
    }

    pub(crate) fn ask(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        (it.phase, it.valid) = (Phase::Asking, self.ttl);
        (it.question, it.entered) = (true, true);
    }

    pub(crate) fn question_arrives(&self, world: &mut World, claim: usize) {
        world.claims[claim].question = false;
        world.claims[claim].late &= !self.in_order;
        world.claims[claim].answer = self.acquire(world, claim);
    }

    fn late_question_arrives(&self, world: &mut World, claim: usize) {
        world.claims[claim].late = false;
        self.acquire(world, claim);
    }

    pub(crate) fn hear(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        it.unsure &= !self.in_order;
        if it.answer == Answer::Refused && !self.makes(Mistake::OldGrantCounts) {
            it.notice = it.notice.filter(|notice| !notice.old);
        }
        match std::mem::take(&mut it.answer) {
            Answer::Granted(token) if it.valid > 0 => {
                let valid = it.valid;
                self.hold(world, claim, token, valid);
            }
            Answer::Refused => (it.phase, it.timer) = (Phase::Waiting, self.look),
            // The lease ended before the reply came: the claim asks again.
            _ => (it.phase, it.timer) = (Phase::Waiting, 0),
        }
    }

    pub(crate) fn hear_grant(&self, world: &mut World, claim: usize, notice: Notice) {
        world.claims[claim].notice = None;
        let in_time = 2 * notice.left > self.ttl;
        if in_time || self.makes(Mistake::CountsFromHearing) {
            self.hold(world, claim, notice.token, notice.left);
        } else {
            world.claims[claim].timer = 0;
        }
    }

    fn hold(&self, world: &mut World, claim: usize, token: u8, valid: u8) {
        let it = &mut world.claims[claim];
        let valid = if self.makes(Mistake::CountsFromHearing) { self.ttl } else { valid };
        (it.phase, it.valid) = (Phase::Holding, valid);
        it.entered = it.unsure && !self.makes(Mistake::ReleaseLeavesEntries);
        self.check_token(world, claim, token);
    }

    pub(crate) fn give_up(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        it.late |= std::mem::take(&mut it.question);
        it.phase = Phase::Leaving;
    }

    /// The store executes the release, and the process reads the reply.
    pub(crate) fn undo(&self, world: &mut World, claim: usize) {
        world.claims[claim].late &= !self.in_order;
        self.release(world, claim);
        world.claims[claim].phase = Phase::Over;
    }

    pub(crate) fn reconnect(&self, world: &mut World, claim: usize) {
        (world.claims[claim].cut, world.claims[claim].timer) = (false, 0);
    }

    /// Moves everything that expires one tick closer to its end. Returns `None` while a running
    /// process has to ask: a process that is late is one that was stopped.
    pub(crate) fn tick(&self, world: &World) -> Option<World> {
        let due = |claim: usize| {
            let it = &world.claims[claim];
            it.phase == Phase::Waiting && it.timer == 0 && world.talks(claim)
        };
        if (0..self.claims.len()).any(due) {
            return None;
        }
        let mut then = *world;
        for key in &mut then.keys {
            key.leases.iter_mut().for_each(pass);
            key.queue.tick();
        }
        for it in &mut then.claims {
            pass(&mut it.timer);
            pass(&mut it.valid);
            pass(&mut it.alive);
            if !self.makes(Mistake::EntriesNeverEnd) {
                pass(&mut it.record);
            }
            if let Some(notice) = &mut it.notice {
                pass(&mut notice.left);
            }
            if it.phase == Phase::Holding && it.valid == 0 && it.process == Process::Runs {
                it.phase = Phase::Leaving;
            }
        }
        Some(then)
    }
}
