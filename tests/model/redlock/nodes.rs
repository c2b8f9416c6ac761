//! What a node does: each command is one script, and so one step; leases end, and the node may
//! restart.

use super::scheme::{Accepts, Counts, Hints, Restarts, Scheme, Setting};
use super::step::Step;
use super::world::{Node, Phase, Request, World};

impl Setting {
    /// The node grants the lock if it is free, or already has this owner token.
    pub(crate) fn take(
        &self,
        world: &World,
        attempt: usize,
        at: usize,
        next: &mut Vec<(Step, World)>,
    ) {
        let (it, node) = (world.attempts[attempt], world.nodes[at]);
        let token = self.tokens[attempt];
        if it.phase == Phase::NotBegun
            || node.requests[attempt] != Request::Sent
            || node.restarted.is_some()
            || (node.owner != 0 && node.owner != token)
            || self.too_late(&node, attempt)
        {
            return;
        }
        let hints = match self.hints {
            Hints::Each(hints) => hints,
            _ => &[it.hint],
        };
        for &hint in hints {
            let mut then = *world;
            let node = &mut then.nodes[at];
            node.owner = token;
            node.fence = hint.max(node.fence + 1);
            node.since = if self.leases_last() { world.now } else { 0 };
            node.requests[attempt] = match (it.phase, self.scheme) {
                (Phase::Requested, _) => Request::Answered(node.fence),
                (Phase::WritingBack, Scheme::WriteBack { counts: Counts::Any, .. }) => {
                    Request::Counted
                }
                _ => Request::Over,
            };
            next.push((Step::Takes(self.who(attempt), at), then));
        }
    }

    pub(crate) fn write_back(
        &self,
        world: &World,
        attempt: usize,
        at: usize,
        next: &mut Vec<(Step, World)>,
    ) {
        let (Scheme::WriteBack { accepts, .. }, node) = (self.scheme, world.nodes[at]) else {
            return;
        };
        let token = world.attempts[attempt].token;
        let owner = node.owner == self.tokens[attempt];
        let accepted = match accepts {
            Accepts::Anybody => true,
            Accepts::Owner => owner,
            Accepts::OwnerNotPassed => owner && node.fence <= token,
        };
        if node.requests[attempt] == Request::Counted && accepted {
            let mut then = *world;
            then.nodes[at].fence = node.fence.max(token);
            then.nodes[at].requests[attempt] = Request::Accepted;
            next.push((Step::WritesBack(self.who(attempt), at), then));
        }
    }

    /// The release of an attempt that was given up arrives. If leases may end at any time, that
    /// covers it.
    pub(crate) fn release(
        &self,
        world: &World,
        attempt: usize,
        at: usize,
        next: &mut Vec<(Step, World)>,
    ) {
        let given_up = world.attempts[attempt].phase == Phase::GivenUp;
        let node = &world.nodes[at];
        let arrives = self.leases_last() && given_up && !self.too_late(node, attempt);
        if arrives && node.owner == self.tokens[attempt] {
            let step = Step::Releases(self.who(attempt), at);
            next.push((step, world.with(at, |node| (node.owner, node.since) = (0, 0))));
        }
    }

    /// What happens at a node without an attempt.
    pub(crate) fn node(&self, world: &World, at: usize, next: &mut Vec<(Step, World)>) {
        let (node, clock) = (world.nodes[at], self.clock);
        if node.owner != 0 && world.now >= node.since + clock.ttl - clock.drift {
            let free = |node: &mut Node| (node.owner, node.since) = (0, 0);
            next.push((Step::LeaseEnds(at), world.with(at, free)));
        }
        if self.renewals {
            let holder = (0..self.tokens.len()).find(|&of| {
                self.tokens[of] == node.owner && world.attempts[of].phase == Phase::Issued
            });
            if let Some(token) = holder.map(|of| world.attempts[of].token) {
                let raise = |node: &mut Node| node.fence = node.fence.max(token);
                next.push((Step::Renews(at), world.with(at, raise)));
            }
        }
        if world.others > 0 {
            let mut then = world.with(at, |node| node.fence += 1);
            then.others -= 1;
            next.push((Step::Advances(at), then));
        }
        let others = || world.nodes.iter().enumerate().filter(|(other, _)| *other != at);
        let largest_of_others = others().map(|(_, other)| other.fence).fold(0, u8::max);
        if world.restarts > 0 {
            let mut then = world.with(at, |node| {
                (node.owner, node.since) = (0, 0);
                node.fence = match self.restart {
                    Restarts::Durable => node.fence,
                    Restarts::Empty | Restarts::LearnsAfterRest => 0,
                    Restarts::LearnsAtOnce => largest_of_others,
                };
                node.restarted = (clock.rest > 0).then_some(world.now);
            });
            then.restarts -= 1;
            next.push((Step::Restarts(at), then));
        }
        if node.restarted.is_some_and(|restarted| world.now >= restarted + clock.rest) {
            let count = |node: &mut Node| {
                node.restarted = None;
                if self.restart == Restarts::LearnsAfterRest {
                    node.fence = node.fence.max(largest_of_others);
                }
            };
            next.push((Step::Counts(at), world.with(at, count)));
        }
    }

    /// Returns whether the node has executed a later attempt with the same token, after which no
    /// earlier command can arrive.
    fn too_late(&self, node: &Node, attempt: usize) -> bool {
        let mut later = attempt + 1..self.tokens.len();
        let same = |later: usize| self.tokens[later] == self.tokens[attempt];
        self.in_order && later.any(|of| same(of) && node.requests[of] != Request::Sent)
    }

    fn leases_last(&self) -> bool {
        self.clock.drift < self.clock.ttl
    }
}

impl World {
    fn with(&self, at: usize, change: impl FnOnce(&mut Node)) -> Self {
        let mut then = *self;
        change(&mut then.nodes[at]);
        then
    }
}
