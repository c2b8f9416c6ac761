//! What a process does, and what becomes of the messages between it and the store.

use super::setting::{Mistake, Setting};
use super::step::Step;
use super::world::{Notice, Reply, World};
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
        if it.request {
            add(Step::Arrives(claim), &|then| self.request_arrives(then, claim));
        }
        if it.late {
            add(Step::ArrivesLate(claim), &|then| self.late_request_arrives(then, claim));
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
            Phase::New | Phase::Waiting if !it.cut && it.timer == 0 => {
                add(Step::SendsRequest(claim), &|then| self.send_request(then, claim));
            }
            Phase::Requested if it.reply != Reply::None => {
                add(Step::ReceivesReply(claim), &|then| self.receive_reply(then, claim));
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
            add(Step::ReceivesGrant(claim), &|then| self.receive_grant(then, claim, notice));
        }
    }

    pub(crate) fn send_request(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        (it.phase, it.valid) = (Phase::Requested, self.ttl);
        (it.request, it.entered) = (true, true);
    }

    pub(crate) fn request_arrives(&self, world: &mut World, claim: usize) {
        world.claims[claim].request = false;
        world.claims[claim].late &= !self.in_order;
        world.claims[claim].reply = self.acquire(world, claim);
    }

    fn late_request_arrives(&self, world: &mut World, claim: usize) {
        world.claims[claim].late = false;
        self.acquire(world, claim);
    }

    pub(crate) fn receive_reply(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        it.unsure &= !self.in_order;
        if it.reply == Reply::Refused && !self.makes(Mistake::OldGrantCounts) {
            it.notice = it.notice.filter(|notice| !notice.old);
        }
        match std::mem::take(&mut it.reply) {
            Reply::Granted(token) if it.valid > 0 => {
                let valid = it.valid;
                self.hold(world, claim, token, valid);
            }
            Reply::Refused => (it.phase, it.timer) = (Phase::Waiting, self.recheck),
            // The lease ended before the reply came: the claim asks again.
            _ => (it.phase, it.timer) = (Phase::Waiting, 0),
        }
    }

    pub(crate) fn receive_grant(&self, world: &mut World, claim: usize, notice: Notice) {
        world.claims[claim].notice = None;
        let in_time = 2 * notice.left > self.ttl;
        if in_time || self.makes(Mistake::CountsFromReceipt) {
            self.hold(world, claim, notice.token, notice.left);
        } else {
            world.claims[claim].timer = 0;
        }
    }

    fn hold(&self, world: &mut World, claim: usize, token: u8, valid: u8) {
        let it = &mut world.claims[claim];
        let valid = if self.makes(Mistake::CountsFromReceipt) { self.ttl } else { valid };
        (it.phase, it.valid) = (Phase::Holding, valid);
        it.entered = it.unsure && !self.makes(Mistake::ReleaseLeavesEntries);
        self.check_token(world, claim, token);
    }

    pub(crate) fn give_up(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        it.late |= std::mem::take(&mut it.request);
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
