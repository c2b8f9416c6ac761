//! The nodes' replies to one acquisition, and the outcome that they add up to.

use std::time::Duration;

use crate::store::{AcquireOutcome, MAX_RECHECK, StoreError};
use crate::{FencingToken, Holder};

/// The replies so far, by node.
pub(super) struct AcquireAnswers {
    by_node: Vec<NodeAnswer>,
    needed: usize,
}

/// One node's reply.
enum NodeAnswer {
    Open,
    Yes { fencing: FencingToken, contended: bool },
    Held { holder: Option<Box<Holder>>, again: Duration },
    Unknown(StoreError),
}

impl AcquireAnswers {
    /// Expects replies from this many nodes, of which `needed` must grant the lock.
    pub(super) fn of(nodes: usize, needed: usize) -> Self {
        Self { by_node: (0..nodes).map(|_| NodeAnswer::Open).collect(), needed }
    }

    pub(super) fn count(&mut self, node: usize, answer: Result<AcquireOutcome, StoreError>) {
        self.by_node[node] = match answer {
            Ok(AcquireOutcome::Acquired { fencing, contended }) => {
                NodeAnswer::Yes { fencing, contended }
            }
            Ok(AcquireOutcome::Held { holder, queued }) => {
                NodeAnswer::Held { holder, again: queued.unwrap_or(MAX_RECHECK) }
            }
            Err(error) => NodeAnswer::Unknown(error),
        };
    }

    /// Whether enough nodes granted the lock.
    pub(super) fn are_enough(&self) -> bool {
        self.count_of(|answer| matches!(answer, NodeAnswer::Yes { .. })) >= self.needed
    }

    /// Whether another claim holds the lock: too few nodes can still grant it, although enough
    /// nodes have replied. An outage must not look like contention.
    pub(super) fn are_contention(&self) -> bool {
        let yes = self.count_of(|answer| matches!(answer, NodeAnswer::Yes { .. }));
        let held = self.count_of(|answer| matches!(answer, NodeAnswer::Held { .. }));
        let open = self.count_of(|answer| matches!(answer, NodeAnswer::Open));
        yes + open < self.needed && yes + held >= self.needed
    }

    /// Returns the number that enough nodes gave, or else the greatest number, and whether it must
    /// still be written back to the nodes. If enough nodes agree, a node that gave a greater number
    /// is ignored, as if its reply had been lost.
    pub(super) fn number(&self) -> (FencingToken, bool) {
        match self.agreed() {
            Some(number) => (number, false),
            None => (self.numbers().max().unwrap_or(FencingToken::from_counter(0)), true),
        }
    }

    /// Returns the number that enough nodes gave, if there is one.
    pub(super) fn agreed(&self) -> Option<FencingToken> {
        let gave = |number| self.numbers().filter(|&other| other == number).count();
        self.numbers().find(|&number| gave(number) >= self.needed)
    }

    fn numbers(&self) -> impl Iterator<Item = FencingToken> {
        self.by_node.iter().filter_map(|answer| match answer {
            NodeAnswer::Yes { fencing, .. } => Some(*fencing),
            _ => None,
        })
    }

    /// Whether claims wait for the lock on any node.
    pub(super) fn contended(&self) -> bool {
        self.count_of(|answer| matches!(answer, NodeAnswer::Yes { contended: true, .. })) > 0
    }

    /// The nodes that granted the lock.
    pub(super) fn granted(&self) -> impl Iterator<Item = usize> {
        let yes = |node: &usize| matches!(self.by_node[*node], NodeAnswer::Yes { .. });
        (0..self.by_node.len()).filter(yes)
    }

    /// The nodes that granted the lock, or whose reply is unknown.
    pub(super) fn may_have_granted(&self) -> impl Iterator<Item = usize> {
        let held = |node: &usize| matches!(self.by_node[*node], NodeAnswer::Held { .. });
        (0..self.by_node.len()).filter(move |node| !held(node))
    }

    /// The error for an acquisition whose outcome is unknown.
    pub(super) fn outage(&self) -> StoreError {
        let errors = || {
            self.by_node.iter().filter_map(|answer| match answer {
                NodeAnswer::Unknown(error) => Some(error),
                _ => None,
            })
        };
        let (count, nodes) = (errors().count(), self.by_node.len());
        let first = errors().next().map(ToString::to_string).unwrap_or_default();
        let error = StoreError::new(format!(
            "{count} of {nodes} servers did not answer, and {} must grant the lock; the first: {first}",
            self.needed
        ));
        if errors().count() == nodes && errors().all(StoreError::is_not_sent) {
            return error.not_sent();
        }
        error
    }

    /// Returns the holder, and after how long to retry without a notification. That is when enough
    /// of the blocking leases have expired. If no process holds the lock because several asked at
    /// the same time, it is a random delay of up to several round trips (`random` is in `0..1`).
    pub(super) fn contention(
        &self,
        asking: Duration,
        random: f64,
    ) -> (Option<Box<Holder>>, Duration) {
        let mut leases: Vec<_> = self.by_node.iter().filter_map(NodeAnswer::held).collect();
        leases.sort_by_key(|(_, again)| *again);
        let yes = self.granted().count();
        let missing = self.needed.saturating_sub(yes).max(1);
        let again = leases.get(missing - 1).map_or(MAX_RECHECK, |(_, again)| *again);
        let said: Vec<_> = leases.iter().filter_map(|(holder, _)| *holder).collect();
        let same = |one: &&Holder| said.iter().filter(|other| one.is_same(other)).count();
        let holder = said.iter().copied().max_by_key(same);
        let silent = self.by_node.len() - yes - leases.len();
        // As far as is known, no process has enough nodes.
        let split = yes > 0 && holder.is_none_or(|holder| same(&holder) + silent < self.needed);
        let again = match split {
            true => again.min(asking.mul_f64(1.0 + 4.0 * random) + SPREAD.mul_f64(random)),
            false => again,
        };
        (holder.cloned().map(Box::new), again)
    }

    fn count_of(&self, is: impl Fn(&NodeAnswer) -> bool) -> usize {
        self.by_node.iter().filter(|answer| is(answer)).count()
    }
}

impl NodeAnswer {
    fn held(&self) -> Option<(Option<&Holder>, Duration)> {
        match self {
            Self::Held { holder, again } => Some((holder.as_deref(), *again)),
            _ => None,
        }
    }
}

/// Processes that asked at the same time spread their retries over this time.
const SPREAD: Duration = Duration::from_millis(10);
