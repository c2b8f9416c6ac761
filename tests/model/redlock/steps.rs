//! What can happen next: whatever a node does in one script is one step, and every other step may
//! come before or after it.
//!
//! No step is forced: a crashed client, a lost message and a late one are steps that are not made,
//! or not made yet.

use super::scheme::Setting;
use super::step::Step;
use super::world::{MAJORITY, NODES, World, Wrong};
use crate::search::Model;

impl Model for Setting {
    type State = World;
    type Step = Step;

    fn starts(&self) -> Vec<World> {
        let start = |&fences: &[u8; NODES]| {
            let mut start =
                World { others: self.others, restarts: self.restarts, ..World::default() };
            for (node, fence) in start.nodes.iter_mut().zip(fences) {
                node.fence = fence;
            }
            let mut sorted = fences;
            sorted.sort_unstable();
            // A token that a majority has reached may have been issued.
            start.before = sorted[NODES - MAJORITY];
            start
        };
        self.starts.iter().map(start).collect()
    }

    fn steps(&self, world: &World) -> Vec<(Step, World)> {
        let mut next = Vec::new();
        if !(0..self.tokens.len()).any(|attempt| self.may_issue(world, attempt)) {
            return next;
        }
        if let Some(attempt) = self.just_begun(world) {
            (0..NODES).for_each(|node| self.take(world, attempt, node, &mut next));
            return next;
        }
        self.begin(world, &mut next);
        for attempt in 0..self.tokens.len() {
            for node in 0..NODES {
                self.take(world, attempt, node, &mut next);
                self.write_back(world, attempt, node, &mut next);
                self.release(world, attempt, node, &mut next);
            }
            self.decide(world, attempt, &mut next);
            self.give_up(world, attempt, &mut next);
        }
        for node in 0..NODES {
            self.node(world, node, &mut next);
        }
        if world.now < self.clock.until {
            next.push((Step::TimePasses, World { now: world.now + 1, ..*world }));
        }
        next
    }

    /// A client only counts nodes, so their names do not matter. All that a state knows of a node
    /// is in its `Node`, so sorting those gives the same for all states that differ in names only.
    fn canonical(&self, mut world: World) -> World {
        world.nodes.sort_unstable();
        world
    }

    fn wrong(&self, world: &World) -> Option<&'static str> {
        world.wrong.map(|wrong| match wrong {
            Wrong::Twice => "issued twice",
            Wrong::NotAbove => "not above one issued before it began",
            Wrong::OutOfOrder => "not above one issued earlier",
            Wrong::BothHold => "both hold",
        })
    }
}
