//! What a holder does with its lease: it renews, extends, hands off inside its process, and
//! releases it.

use super::mistake::Mistake;
use super::setting::Setting;
use super::step::Step;
use super::world::{RenewRequest, World};
use crate::claims::{Phase, Process, Wrong};

impl Setting {
    /// The steps of a claim that holds.
    pub(crate) fn keep(&self, world: &World, claim: usize, next: &mut Vec<(Step, World)>) {
        let it = world.claims[claim];
        if it.phase != Phase::Holding {
            return;
        }
        let mut add = |step, change: &dyn Fn(&mut World)| {
            let mut then = *world;
            change(&mut then);
            next.push((step, then));
        };
        if let RenewRequest::Sent(ticks) = it.renewal {
            add(Step::Renews(claim), &|then| {
                self.drop_late(then, claim);
                then.claims[claim].renewal = self.renew(then, claim, ticks);
            });
        }
        if world.links[self.link(claim)].process != Process::Runs {
            return;
        }
        add(Step::Releases(claim), &|then| self.start_leaving(then, claim));
        if it.renewal == RenewRequest::None && it.renewals > 0 && self.talks(world, claim) {
            add(Step::SendsRenewal(claim), &|then| self.send_renewal(then, claim, self.ttl));
            if self.extended > 0 {
                add(Step::SendsExtension(claim), &|then| {
                    self.send_renewal(then, claim, self.extended);
                });
            }
        }
        let replicated = match it.renewal {
            RenewRequest::Renewed { replicated } => replicated || !self.waits_for_replica,
            RenewRequest::Lost => true,
            _ => false,
        };
        if replicated {
            add(Step::ReceivesRenewal(claim), &|then| self.receive_renewal(then, claim));
        }
        if it.hand_offs > 0 && self.is_plain(claim) && self.may_hand_off(world, claim) {
            add(Step::HandsOff(claim), &|then| self.pass_on(then, claim));
        }
    }

    fn send_renewal(&self, world: &mut World, claim: usize, ticks: u8) {
        let it = &mut world.claims[claim];
        it.renewals -= 1;
        (it.renewal, it.renewed) = (RenewRequest::Sent(ticks), ticks);
    }

    fn receive_renewal(&self, world: &mut World, claim: usize) {
        let renewal = std::mem::take(&mut world.claims[claim].renewal);
        if renewal == RenewRequest::Lost {
            self.start_leaving(world, claim);
            return;
        }
        let it = &mut world.claims[claim];
        it.valid = it.valid.max(std::mem::take(&mut it.renewed));
    }

    /// Returns whether the lease may be handed off: it is valid by the process's own clock.
    fn may_hand_off(&self, world: &World, claim: usize) -> bool {
        world.claims[claim].valid > 0 || self.makes(Mistake::HandsOffTooLate)
    }

    /// Hands the lease to another caller of the process, under the next part of the same token. No
    /// claim of another process may have been given a token in between.
    fn pass_on(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        it.hand_offs -= 1;
        if it.passed && !it.robbed {
            world.record_wrong(Wrong::TokenNotAbove);
        }
    }
}
