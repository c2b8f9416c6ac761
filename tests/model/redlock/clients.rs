//! What a client does: it begins, decides, issues a token or gives up.

use super::scheme::{Checks, Counts, Hints, Scheme, Setting};
use super::step::{Step, Who};
use super::world::{MAJORITY, NODES, Node, Phase, Request, World, Wrong};

impl Setting {
    /// Begins the next attempt, in the order of their numbers, because alike attempts could
    /// exchange names.
    pub(crate) fn begin(&self, world: &World, next: &mut Vec<(Step, World)>) {
        let begun = |at: &usize| world.attempts[*at].phase != Phase::NotBegun;
        let attempt = (0..self.tokens.len()).take_while(begun).count();
        let Some(&token) = self.tokens.get(attempt) else { return };
        let under_way = world.count(Phase::Requested) + world.count(Phase::WritingBack);
        let earlier = (0..attempt).rfind(|&earlier| self.tokens[earlier] == token);
        let given_up = |at: usize| world.attempts[at].phase == Phase::GivenUp;
        if under_way >= self.together || !earlier.is_none_or(given_up) {
            return;
        }
        let hints: Vec<u8> = match self.hints {
            Hints::Any(hints) => hints.to_vec(),
            // Each node chooses its own.
            Hints::Each(_) => vec![0],
            Hints::Clock { ahead, tick } => (0..=ahead).map(|by| (world.now + by) * tick).collect(),
        };
        for hint in hints {
            let mut then = *world;
            let it = &mut then.attempts[attempt];
            (it.phase, it.hint, it.began) = (Phase::Requested, hint, world.now);
            it.floor = world.largest();
            if let Some(earlier) = earlier.filter(|_| self.mixes) {
                for node in &mut then.nodes {
                    node.requests[attempt] = node.requests[earlier];
                }
            }
            next.push((Step::Begins(self.who(attempt)), then));
        }
    }

    /// Returns an attempt that has begun and must acquire its first lock next.
    ///
    /// If no attempt is given up and hints do not depend on time, this leaves nothing out: an
    /// attempt that began earlier could do nothing before that lock, its lease would end earlier,
    /// and less would be required of its token.
    pub(crate) fn just_begun(&self, world: &World) -> Option<usize> {
        let simple = self.never_gives_up() && !matches!(self.hints, Hints::Clock { .. });
        (0..self.tokens.len()).filter(|_| simple).find(|&attempt| {
            world.attempts[attempt].phase == Phase::Requested
                && world.nodes_where(attempt, |request| request == Request::Sent) == NODES
        })
    }

    fn never_gives_up(&self) -> bool {
        let alone = |(at, token)| !self.tokens[..at].contains(token);
        self.together >= self.tokens.len() && self.tokens.iter().enumerate().all(alone)
    }

    /// Lets a client decide, with any majority of the available replies.
    pub(crate) fn decide(&self, world: &World, attempt: usize, next: &mut Vec<(Step, World)>) {
        let it = world.attempts[attempt];
        if !self.in_time(world, attempt) {
            return;
        }
        if it.phase == Phase::WritingBack
            && world.nodes_where(attempt, |request| request == Request::Accepted) >= MAJORITY
        {
            let then = self.issue(*world, attempt, it.token);
            next.push((Step::HasMajority(self.who(attempt)), then));
        }
        if it.phase != Phase::Requested {
            return;
        }
        for heard in 0..1_u8 << NODES {
            let answer = |at: usize| match world.nodes[at].requests[attempt] {
                Request::Answered(fence) if heard & (1 << at) != 0 => Some(fence),
                _ => None,
            };
            let answers: [Option<u8>; NODES] = std::array::from_fn(answer);
            let yes = answers.iter().flatten().count();
            // A set with a node that did not reply duplicates a smaller set.
            let Some(&token) = answers.iter().flatten().max() else { continue };
            if yes != heard.count_ones() as usize || yes < MAJORITY {
                continue;
            }
            let agreed =
                answers.iter().filter(|&&answer| answer == Some(token)).count() >= MAJORITY;
            let then = match self.scheme {
                Scheme::Agreed if !agreed => continue,
                Scheme::WriteBack { at_once, counts, .. } if !(at_once && agreed) => {
                    write_to(*world, attempt, token, counts, answers)
                }
                _ => self.issue(*world, attempt, token),
            };
            next.push((Step::ReceivesReply(self.who(attempt), answers), then));
        }
    }

    fn issue(&self, mut world: World, attempt: usize, token: u8) -> World {
        let others = || world.attempts.iter().filter(|other| other.phase == Phase::Issued);
        let wrong = match self.checks {
            Checks::Fencing if others().any(|other| other.token == token) => Some(Wrong::Twice),
            Checks::Fencing if token <= world.attempts[attempt].floor => Some(Wrong::NotAbove),
            Checks::Order if token <= world.largest() => Some(Wrong::OutOfOrder),
            Checks::Exclusion if others().any(|other| world.now < self.deadline(other.began)) => {
                Some(Wrong::BothHold)
            }
            _ => None,
        };
        world.wrong = wrong;
        let it = &mut world.attempts[attempt];
        (it.phase, it.token, it.floor) = (Phase::Issued, token, 0);
        for node in &mut world.nodes {
            finish(node, attempt);
        }
        world
    }

    /// Gives up an attempt. The client begins the next, or another client does.
    pub(crate) fn give_up(&self, world: &World, attempt: usize, next: &mut Vec<(Step, World)>) {
        if !world.under_way(attempt) || self.never_gives_up() {
            return;
        }
        let mut then = *world;
        let it = &mut then.attempts[attempt];
        (it.phase, it.token, it.floor) = (Phase::GivenUp, 0, 0);
        if !self.mixes {
            for node in &mut then.nodes {
                finish(node, attempt);
            }
        }
        next.push((Step::GivesUp(self.who(attempt)), then));
    }

    /// Returns whether the attempt may still issue a token. If none may, nothing can go wrong any
    /// more.
    pub(crate) fn may_issue(&self, world: &World, attempt: usize) -> bool {
        match world.attempts[attempt].phase {
            Phase::NotBegun => true,
            Phase::Requested | Phase::WritingBack => self.in_time(world, attempt),
            Phase::Issued | Phase::GivenUp => false,
        }
    }

    /// Returns whether the lease still lasts, as the client counts it.
    fn in_time(&self, world: &World, attempt: usize) -> bool {
        world.now < self.deadline(world.attempts[attempt].began)
    }

    fn deadline(&self, began: u8) -> u8 {
        began + self.clock.ttl - self.clock.margin
    }

    pub(crate) fn who(&self, attempt: usize) -> Who {
        let token = self.tokens[attempt];
        Who(token, self.tokens[..attempt].iter().filter(|&&earlier| earlier == token).count())
    }
}

/// From now on the client writes `token`, the largest of `answers`, to the nodes.
fn write_to(
    mut world: World,
    attempt: usize,
    token: u8,
    counts: Counts,
    answers: [Option<u8>; NODES],
) -> World {
    let it = &mut world.attempts[attempt];
    (it.phase, it.token) = (Phase::WritingBack, token);
    for (node, answer) in world.nodes.iter_mut().zip(answers) {
        let request = &mut node.requests[attempt];
        if matches!(request, Request::Answered(_)) {
            let counted = answer.is_some() || counts == Counts::Any;
            *request = if counted { Request::Counted } else { Request::Over };
        }
    }
    world
}

/// Discards the node's reply. A request that has not arrived yet still may.
fn finish(node: &mut Node, attempt: usize) {
    if node.requests[attempt] != Request::Sent {
        node.requests[attempt] = Request::Over;
    }
}
