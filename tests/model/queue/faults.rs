//! How faults happen around the protocol.

use super::setting::{Fault, Mistake, Setting};
use super::step::Step;
use super::world::{Claim, Key, Reply, World};
use crate::claims::{KEYS, Phase, Process, RETRY};

impl Setting {
    /// Everything that can go wrong in `world`, while faults are left.
    pub(crate) fn fail(&self, world: &World, next: &mut Vec<(Step, World)>) {
        if world.faults == 0 {
            return;
        }
        for &fault in self.kinds {
            let places = match fault {
                Fault::Flush => 0..1,
                Fault::Evict | Fault::Delete => 0..KEYS,
                _ => 0..self.claims.len(),
            };
            for at in places.filter(|&at| self.can_fail(world, fault, at)) {
                let mut then = *world;
                then.faults -= 1;
                self.fails(&mut then, fault, at);
                next.push((Step::Fails(fault, at), then));
            }
        }
    }

    fn can_fail(&self, world: &World, fault: Fault, at: usize) -> bool {
        let has_any = |key: &Key| key.leases.iter().any(|&left| left > 0);
        match fault {
            Fault::Evict | Fault::Delete => has_any(&world.keys[at]),
            Fault::Flush => true,
            _ => {
                let it = &world.claims[at];
                // A process without a claim has nothing to lose.
                let counts = !matches!(it.phase, Phase::New | Phase::Over);
                match fault {
                    Fault::Kill => it.process != Process::Dead && counts,
                    Fault::Stop => it.process == Process::Runs && counts,
                    Fault::Timeout => it.process == Process::Runs && it.phase == Phase::Requested,
                    Fault::LoseGrant => it.notice.is_some(),
                    Fault::LoseUndone => world.talks(at) && it.phase == Phase::Leaving,
                    _ => world.talks(at) && counts,
                }
            }
        }
    }

    fn fails(&self, world: &mut World, fault: Fault, at: usize) {
        match fault {
            Fault::Evict => self.force_release(world, at),
            Fault::Delete => self.rob(world, at),
            Fault::Flush => self.flush(world),
            Fault::LoseUndone if self.makes(Mistake::UndoesOnce) => {
                world.claims[at].phase = Phase::Over;
            }
            Fault::LoseUndone => self.release(world, at),
            _ => lose(&mut world.claims[at], fault),
        }
    }

    /// Tokens still grow, because the store counts from its clock.
    fn flush(&self, world: &mut World) {
        for key in 0..KEYS {
            self.rob(world, key);
            world.keys[key] = Key {
                issued: world.keys[key].issued,
                issued_alone: world.keys[key].issued_alone,
                ..Key::default()
            };
        }
        for it in &mut world.claims {
            (it.record, it.alive) = (0, 0);
        }
    }
}

fn lose(it: &mut Claim, fault: Fault) {
    match fault {
        Fault::Kill => (it.process, it.phase) = (Process::Dead, Phase::Over),
        Fault::Stop => it.process = Process::Stopped,
        Fault::LoseGrant => it.notice = None,
        // A timeout, or the end of the connection.
        _ => {
            it.cut = fault == Fault::Cut;
            it.late |= std::mem::take(&mut it.request);
            it.reply = Reply::None;
            if it.phase == Phase::Requested {
                it.unsure = true;
                (it.phase, it.timer) = (Phase::Waiting, RETRY);
            }
            if it.cut {
                it.notice = None;
            }
            return;
        }
    }
    if it.process == Process::Dead {
        it.late |= std::mem::take(&mut it.request);
        it.cut = false;
    }
}
