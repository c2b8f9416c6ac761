//! What a process does for a claim, and what becomes of its requests and their replies.

use super::count::increment;
use super::mistake::Mistake;
use super::setting::Setting;
use super::step::Step;
use super::world::{Message, Set, World};
use crate::claims::{Phase, Process};

impl Setting {
    /// The steps of one claim and of its messages, without a fault.
    pub(crate) fn act(&self, world: &World, claim: usize, next: &mut Vec<(Step, World)>) {
        let it = world.claims[claim];
        let mut add = |step, change: &dyn Fn(&mut World)| {
            let mut then = *world;
            change(&mut then);
            next.push((step, then));
        };
        match it.message {
            Message::Pair => add(Step::Sets(claim), &|then| self.arrive(then, claim)),
            Message::Half(_) => add(Step::Increments(claim), &|then| self.arrive(then, claim)),
            Message::Again(_) => add(Step::SetsAgain(claim), &|then| self.arrive(then, claim)),
            Message::Script => add(Step::Arrives(claim), &|then| self.arrive(then, claim)),
            _ => {}
        }
        if it.late_pair > 0 || it.late_script {
            add(Step::ArrivesLate(claim), &|then| self.arrive_late(then, claim));
        }
        let link = world.links[self.link(claim)];
        if link.process != Process::Runs {
            return;
        }
        if world.waits(claim) && self.claims[claim].gives_up {
            add(Step::GivesUp(claim), &|then| self.give_up(then, claim));
        }
        match it.phase {
            Phase::New | Phase::Waiting if !link.cut && it.timer == 0 => {
                if self.may_send_pair(world, claim) {
                    add(Step::SendsPair(claim), &|then| self.send_pair(then, claim));
                }
                // A process that saw others wait sends its request to the script at once.
                if it.phase == Phase::Waiting
                    || !link.raised[self.counter(claim)]
                    || !self.is_plain(claim)
                {
                    add(Step::SendsRequest(claim), &|then| self.send_request(then, claim));
                }
            }
            Phase::Requested if self.has_reply(world, claim) => {
                add(Step::ReceivesReply(claim), &|then| self.receive_reply(then, claim));
            }
            Phase::Leaving if !link.cut && it.lean => {
                add(Step::Deletes(claim), &|then| self.release_lean(then, claim));
            }
            Phase::Leaving if !link.cut => {
                add(Step::IsUndone(claim), &|then| self.undo(then, claim, false));
                if self.quiet {
                    add(Step::IsUndoneQuietly(claim), &|then| self.undo(then, claim, true));
                }
            }
            _ => {}
        }
        if let (Phase::Requested, Message::Granted(grant)) = (it.phase, it.message)
            && (grant.old || !self.counts_as_granted(grant))
        {
            add(Step::MissesReply(claim), &|then| self.miss_reply(then, claim));
        }
        if let (Phase::Waiting, Some(notice)) = (it.phase, it.notice) {
            add(Step::ReceivesGrant(claim), &|then| self.receive_grant(then, claim, notice));
        }
    }

    /// Returns whether two bare commands may ask: the flag is set, and the claim is in no queue.
    pub(crate) fn may_send_pair(&self, world: &World, claim: usize) -> bool {
        let raised = world.links[self.link(claim)].raised[self.counter(claim)];
        self.is_plain(claim) && raised && !world.claims[claim].entered
    }

    pub(crate) fn send_pair(&self, world: &mut World, claim: usize) {
        let seen = world.links[self.link(claim)].seen[self.counter(claim)];
        let it = &mut world.claims[claim];
        (it.phase, it.message, it.valid, it.seen) =
            (Phase::Requested, Message::Pair, self.ttl, seen);
    }

    pub(crate) fn send_request(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        (it.phase, it.message, it.valid) = (Phase::Requested, Message::Script, self.ttl);
        it.entered = true;
    }

    /// The server executes the next command of a request.
    pub(crate) fn arrive(&self, world: &mut World, claim: usize) {
        self.drop_late(world, claim);
        world.claims[claim].message = match world.claims[claim].message {
            Message::Pair => {
                let set = if self.set(world, claim) { Set::Done } else { Set::Refused };
                Message::Half(set)
            }
            Message::Half(set) => self.increment(world, claim, set),
            Message::Again(grant) => self.set_again(world, claim, grant),
            Message::Script => self.acquire(world, claim),
            other => other,
        };
    }

    /// The server executes the next command of a request that its process has given up; no process
    /// reads the reply.
    fn arrive_late(&self, world: &mut World, claim: usize) {
        let pair = world.claims[claim].late_pair;
        match pair {
            0 => {
                world.claims[claim].late_script = false;
                self.acquire(world, claim);
            }
            1 => {
                world.claims[claim].late_pair = 0;
                increment(world, self.counter(claim));
            }
            _ => {
                world.claims[claim].late_pair = 1;
                self.set(world, claim);
            }
        }
    }

    /// Drops earlier commands that have not arrived, once a later one has.
    pub(crate) fn drop_late(&self, world: &mut World, claim: usize) {
        if self.in_order {
            (world.claims[claim].late_pair, world.claims[claim].late_script) = (0, false);
        }
    }

    pub(crate) fn give_up(&self, world: &mut World, claim: usize) {
        self.abandon(world, claim);
        self.start_leaving(world, claim);
    }

    /// Gives up what is on its way: it arrives late, or never.
    pub(crate) fn abandon(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        match std::mem::take(&mut it.message) {
            Message::Pair => it.late_pair = 2,
            Message::Half(_) => it.late_pair = 1,
            Message::Script => it.late_script = true,
            _ => {}
        }
    }

    pub(crate) fn start_leaving(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        it.phase = Phase::Leaving;
        let wants = self.claims[claim];
        it.lean = self.is_plain(claim) && !it.entered && wants.keeps == 0;
    }

    /// The server executes the lean release, and the process reads the reply.
    pub(crate) fn release_lean(&self, world: &mut World, claim: usize) {
        self.drop_late(world, claim);
        if self.delete(world, claim) || self.makes(Mistake::NotEqualIsLost) {
            world.claims[claim].phase = Phase::Over;
        }
        world.claims[claim].lean = false;
    }

    /// The server executes the release script, and the process reads the reply.
    pub(crate) fn undo(&self, world: &mut World, claim: usize, quiet: bool) {
        self.drop_late(world, claim);
        self.release(world, claim, self.claims[claim].keeps, quiet);
        world.claims[claim].phase = Phase::Over;
    }
}
