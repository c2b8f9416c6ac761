//! How faults happen around the protocol.

use super::fault::Fault;
use super::mistake::Mistake;
use super::server::{Form, Key, NEVER, Server};
use super::setting::Setting;
use super::step::Step;
use super::world::{Link, Message, RenewRequest, Set, World};
use crate::claims::{KEYS, Phase, Process, RETRY};

impl Setting {
    /// Everything that can go wrong in `world`, while faults are left.
    pub(crate) fn fail(&self, world: &World, next: &mut Vec<(Step, World)>) {
        if world.faults == 0 {
            return;
        }
        for &fault in self.kinds {
            let places = match fault {
                Fault::Evict | Fault::Delete => KEYS,
                Fault::Flush | Fault::Failover | Fault::RoleChange | Fault::Swap => 1,
                Fault::Intrude | Fault::IntrudeForever => 1,
                // Process numbers are not above those of their claims.
                _ => self.claims.len(),
            };
            for at in (0..places).filter(|&at| self.can_fail(world, fault, at)) {
                let mut then = *world;
                then.faults -= 1;
                self.fails(&mut then, fault, at);
                next.push((Step::Fails(fault, at), then));
            }
        }
    }

    fn can_fail(&self, world: &World, fault: Fault, at: usize) -> bool {
        let has_any = |key: &Key| key.form != Form::Absent;
        let busy = |claim: usize| !matches!(world.claims[claim].phase, Phase::New | Phase::Over);
        // A process without a claim has nothing to lose.
        let counts = || self.of_process(at).any(busy);
        match fault {
            Fault::Evict | Fault::Delete => has_any(&world.server.keys[at]),
            Fault::Flush | Fault::Failover | Fault::RoleChange => true,
            // The claims of one process for a lock ask one after another.
            Fault::Swap => world.claims.iter().all(|it| it.phase != Phase::Requested),
            Fault::Intrude | Fault::IntrudeForever => !has_any(&world.server.keys[0]),
            Fault::Kill => world.links[at].process != Process::Dead && counts(),
            Fault::Stop => world.links[at].process == Process::Runs && counts(),
            Fault::Cut => {
                world.links[at].process == Process::Runs && !world.links[at].cut && counts()
            }
            Fault::Timeout => {
                let runs = world.links[self.link(at)].process == Process::Runs;
                let it = world.claims[at];
                runs && (it.phase == Phase::Requested || it.renewal != RenewRequest::None)
            }
            Fault::LoseGrant => world.claims[at].notice.is_some(),
            Fault::LoseUndone => self.talks(world, at) && world.claims[at].phase == Phase::Leaving,
            Fault::RedirectSet => world.claims[at].message == Message::Pair,
            Fault::RedirectIncrement => matches!(world.claims[at].message, Message::Half(_)),
        }
    }

    fn fails(&self, world: &mut World, fault: Fault, at: usize) {
        match fault {
            Fault::Kill => {
                world.links[at] = Link { process: Process::Dead, ..Link::default() };
                for claim in self.of_process(at) {
                    self.abandon(world, claim);
                    world.claims[claim].phase = Phase::Over;
                }
            }
            Fault::Stop => world.links[at].process = Process::Stopped,
            Fault::Cut => {
                world.links[at].cut = true;
                if !self.makes(Mistake::NewConnectionKeepsFlag) {
                    world.links[at].raised = [false; KEYS];
                }
                for claim in self.of_process(at) {
                    self.time_out(world, claim);
                    world.claims[claim].notice = None;
                }
            }
            Fault::Timeout => self.time_out(world, at),
            Fault::LoseGrant => world.claims[at].notice = None,
            Fault::LoseUndone if world.claims[at].lean => {
                self.delete(world, at);
            }
            Fault::LoseUndone => self.release(world, at, self.claims[at].keeps, false),
            Fault::Evict => self.force_release(world, at),
            Fault::Delete => {
                self.rob(world, at);
                world.server.keys[at].vanish();
                world.server.keys[at].disturbed = !world.server.keys[at].queue.is_empty();
            }
            Fault::Flush => self.flush(world),
            Fault::Intrude => self.intrude(world, self.ttl),
            Fault::IntrudeForever => self.intrude(world, NEVER),
            Fault::Failover | Fault::RoleChange | Fault::Swap => self.fail_over(world, fault),
            Fault::RedirectSet => world.claims[at].message = Message::Half(Set::Redirected),
            Fault::RedirectIncrement => world.claims[at].message = Message::Void { error: true },
        }
    }

    /// The process stops waiting for the reply to a request or to a renewal.
    pub(crate) fn time_out(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        it.renewal = RenewRequest::None;
        it.renewed = 0;
        if it.phase == Phase::Requested {
            // A pair leaves no entry.
            it.unsure |= it.entered;
            (it.phase, it.timer) = (Phase::Waiting, RETRY);
            self.abandon(world, claim);
        }
    }

    /// Takes a key from its holders before their leases end.
    pub(crate) fn rob(&self, world: &mut World, key: usize) {
        for claim in 0..self.claims.len() {
            world.claims[claim].robbed |= world.server.keys[key].lease(claim) > 0;
        }
        if key == 0 {
            world.intruder = 0;
        }
    }

    fn flush(&self, world: &mut World) {
        (0..KEYS).for_each(|key| self.rob(world, key));
        world.server = Server::default();
        for it in &mut world.claims {
            it.alive = 0;
        }
    }

    /// Another program takes the first key, for this many ticks.
    fn intrude(&self, world: &mut World, ticks: u8) {
        let it = &mut world.server.keys[0];
        it.write(Form::Foreign, 0, 0, ticks);
        it.disturbed = !it.queue.is_empty();
        world.intruder = ticks;
    }
}
