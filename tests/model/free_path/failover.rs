//! The replica: when it catches up, and when it takes the place of its server.

use super::fault::Fault;
use super::mistake::Mistake;
use super::server::Form;
use super::setting::Setting;
use super::world::{Grant, Message, RenewRequest, World};
use crate::claims::{KEYS, Phase, RETRY, Wrong};

impl Setting {
    /// The replica has everything now, and grants and renewals that wait for it learn that.
    pub(crate) fn replicate(&self, world: &World) -> Option<World> {
        let matters = world.faults > 0 || self.waits_for_replica;
        if !self.replica || !matters {
            return None;
        }
        let mut then = *world;
        (then.replica, then.behind) = (then.server, 0);
        for it in &mut then.claims {
            if let Message::Granted(grant) = &mut it.message {
                grant.replicated |= !grant.old;
            }
            if let RenewRequest::Renewed { replicated } = &mut it.renewal {
                *replicated = true;
            }
        }
        Some(then)
    }

    /// Makes the replica the server. What was on its way to the old server is lost; a reply of the
    /// old server may still arrive.
    pub(crate) fn fail_over(&self, world: &mut World, fault: Fault) {
        (world.server, world.behind) = (world.replica, 0);
        let new_connections = fault == Fault::Failover;
        let keeps = match fault {
            Fault::Failover => self.makes(Mistake::NewConnectionKeepsFlag),
            Fault::RoleChange => self.makes(Mistake::RoleKeepsFlag),
            _ => true,
        };
        for link in &mut world.links {
            link.cut |= new_connections;
            if !keeps {
                link.raised = [false; KEYS];
            }
        }
        world.intruder = world.intruder.min(self.foreign_left(world));
        for claim in 0..self.claims.len() {
            let replicated = matches!(
                world.claims[claim].message,
                Message::Granted(Grant { replicated: true, .. })
            );
            let believes = world.claims[claim].phase == Phase::Holding || replicated;
            let has =
                |&key: &usize| world.server.keys[key].lease(claim) >= world.claims[claim].valid;
            if !self.keys(claim).iter().all(has) {
                let lost = self.waits_for_replica && believes && !world.claims[claim].robbed;
                if lost && world.claims[claim].valid > 0 {
                    world.record_wrong(Wrong::Conflict);
                }
                world.claims[claim].robbed = true;
            }
            let record = world.server.records[claim];
            let it = &mut world.claims[claim];
            it.alive = it.alive.min(record);
            (it.late_pair, it.late_script) = (0, false);
            (it.notice, it.renewal, it.renewed) = (None, RenewRequest::None, 0);
            match &mut it.message {
                Message::Granted(grant) => grant.old = true,
                message if it.phase == Phase::Requested => {
                    *message = Message::None;
                    it.unsure |= it.entered;
                    (it.phase, it.timer) = (Phase::Waiting, RETRY);
                }
                _ => {}
            }
        }
    }

    /// How long the new server keeps the lock of another program.
    fn foreign_left(&self, world: &World) -> u8 {
        let it = &world.server.keys[0];
        match it.form {
            Form::Foreign => it.expires,
            _ => 0,
        }
    }
}
