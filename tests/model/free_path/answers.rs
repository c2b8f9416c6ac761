//! How a process handles replies, and the notifications of grants.

use super::mistake::Mistake;
use super::setting::Setting;
use super::world::{Grant, Message, Notice, World};
use crate::claims::{KEYS, Phase, RETRY};

impl Setting {
    /// Returns whether the reply has come, with as many replicas as it needs.
    pub(crate) fn has_reply(&self, world: &World, claim: usize) -> bool {
        match world.claims[claim].message {
            Message::Void { .. } | Message::Refused => true,
            Message::Granted(grant) => self.counts_as_granted(grant),
            _ => false,
        }
    }

    pub(crate) fn counts_as_granted(&self, grant: Grant) -> bool {
        grant.replicated || !self.waits_for_replica || self.makes(Mistake::DoesNotWait)
    }

    pub(crate) fn receive_reply(&self, world: &mut World, claim: usize) {
        let link = self.link(claim);
        let it = &mut world.claims[claim];
        let message = std::mem::take(&mut it.message);
        if !matches!(message, Message::Void { .. } | Message::Granted(Grant { bare: true, .. })) {
            it.unsure &= !self.in_order;
        }
        match message {
            Message::Granted(grant) => {
                let valid = if self.makes(Mistake::IgnoresTheLease) { self.ttl } else { it.valid };
                (it.phase, it.timer) = (Phase::Waiting, 0);
                self.record_grant(world, claim, grant);
                if valid > 0 {
                    self.hold(world, claim, grant.stale, valid);
                }
            }
            Message::Void { error } => {
                if error {
                    world.links[link].raised = [false; KEYS];
                }
                self.send_request(world, claim);
            }
            Message::Refused => {
                it.notice = it.notice.filter(|notice| !notice.old);
                (it.phase, it.timer) = (Phase::Waiting, self.recheck);
                world.links[link].raised[self.counter(claim)] |=
                    self.makes(Mistake::QueuedSetsFlag);
            }
            _ => {}
        }
    }

    /// Notes the token of a grant, and that this connection's counter was raised.
    fn record_grant(&self, world: &mut World, claim: usize, grant: Grant) {
        let (link, of) = (&mut world.links[self.link(claim)], self.counter(claim));
        link.seen[of] = link.seen[of].max(grant.token);
        let of_this = !grant.old || self.makes(Mistake::LateAnswerSetsFlag);
        let raises = !grant.bare && of_this;
        link.raised[of] |= raises;
        if raises && self.makes(Mistake::OneFlagForAllCounters) {
            link.raised = [true; KEYS];
        }
    }

    /// No reply comes any more, or not in time from as many replicas as it needs.
    pub(crate) fn miss_reply(&self, world: &mut World, claim: usize) {
        let it = &mut world.claims[claim];
        let bare = matches!(it.message, Message::Granted(Grant { bare: true, .. }));
        it.unsure |= !bare;
        it.message = Message::None;
        (it.phase, it.timer) = (Phase::Waiting, RETRY);
    }

    pub(crate) fn receive_grant(&self, world: &mut World, claim: usize, notice: Notice) {
        world.claims[claim].notice = None;
        let in_time = 2 * notice.left > self.ttl;
        // A grant that may be on no replica is requested again.
        if in_time && !self.waits_for_replica {
            let (link, of) = (&mut world.links[self.link(claim)], self.counter(claim));
            link.seen[of] = link.seen[of].max(notice.token);
            self.hold(world, claim, notice.stale, notice.left);
        } else {
            world.claims[claim].timer = 0;
        }
    }

    fn hold(&self, world: &mut World, claim: usize, stale: bool, valid: u8) {
        let it = &mut world.claims[claim];
        (it.phase, it.valid) = (Phase::Holding, valid);
        (it.renewals, it.hand_offs) = (self.renewals, self.hand_offs);
        it.entered = it.unsure;
        self.check_token(world, stale);
    }
}
