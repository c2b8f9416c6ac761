//! The nodes' replies to one acquisition, and the outcome that they add up to.

use std::time::Duration;

use crate::store::{AcquireOutcome, MAX_RECHECK, StoreError};
use crate::{FencingToken, Holder, HolderId};

/// The replies so far, by node.
pub(super) struct AcquireReplies {
    by_node: Vec<NodeReply>,
    needed: usize,
}

/// One node's reply.
enum NodeReply {
    Pending,
    Granted { fencing: FencingToken, contended: bool },
    Held { holder: Option<Box<Holder>>, recheck_after: Duration },
    Unknown(StoreError),
}

impl AcquireReplies {
    /// Expects replies from this many nodes, of which `needed` must grant the lock.
    pub(super) fn of(nodes: usize, needed: usize) -> Self {
        Self { by_node: (0..nodes).map(|_| NodeReply::Pending).collect(), needed }
    }

    pub(super) fn count(&mut self, node: usize, reply: Result<AcquireOutcome, StoreError>) {
        self.by_node[node] = match reply {
            Ok(AcquireOutcome::Acquired { fencing, contended }) => {
                NodeReply::Granted { fencing, contended }
            }
            Ok(AcquireOutcome::Held { holder, queued }) => {
                NodeReply::Held { holder, recheck_after: queued.unwrap_or(MAX_RECHECK) }
            }
            Err(error) => NodeReply::Unknown(error),
        };
    }

    /// Whether enough nodes granted the lock.
    pub(super) fn are_enough(&self) -> bool {
        self.count_of(|reply| matches!(reply, NodeReply::Granted { .. })) >= self.needed
    }

    /// Whether another claim holds the lock: too few nodes can still grant it, although enough
    /// nodes have replied. An outage must not look like contention.
    pub(super) fn show_contention(&self) -> bool {
        let granted = self.count_of(|reply| matches!(reply, NodeReply::Granted { .. }));
        let held = self.count_of(|reply| matches!(reply, NodeReply::Held { .. }));
        let pending = self.count_of(|reply| matches!(reply, NodeReply::Pending));
        granted + pending < self.needed && granted + held >= self.needed
    }

    /// Whether the replies so far leave open that the key is done: some nodes say so, and enough of
    /// them may still do.
    pub(super) fn may_show_done(&self) -> bool {
        let done = self.count_of(NodeReply::is_done);
        let pending = self.count_of(|reply| matches!(reply, NodeReply::Pending));
        done > 0 && done < self.needed && done + pending >= self.needed
    }

    /// Returns the number that enough nodes gave, or else the greatest number, and whether it must
    /// still be written back to the nodes. If enough nodes agree, a node that gave a greater number
    /// is ignored, as if its reply had been lost.
    pub(super) fn token(&self) -> (FencingToken, bool) {
        match self.agreed() {
            Some(token) => (token, false),
            None => (self.tokens().max().unwrap_or(FencingToken::from_counter(0)), true),
        }
    }

    /// Returns the number that enough nodes gave, if there is one.
    pub(super) fn agreed(&self) -> Option<FencingToken> {
        let grants_of = |token| self.tokens().filter(|&other| other == token).count();
        self.tokens().find(|&token| grants_of(token) >= self.needed)
    }

    fn tokens(&self) -> impl Iterator<Item = FencingToken> {
        self.by_node.iter().filter_map(|reply| match reply {
            NodeReply::Granted { fencing, .. } => Some(*fencing),
            _ => None,
        })
    }

    /// Whether claims wait for the lock on any node.
    pub(super) fn contended(&self) -> bool {
        self.count_of(|reply| matches!(reply, NodeReply::Granted { contended: true, .. })) > 0
    }

    /// The nodes that granted the lock.
    pub(super) fn granted(&self) -> impl Iterator<Item = usize> {
        let granted = |node: &usize| matches!(self.by_node[*node], NodeReply::Granted { .. });
        (0..self.by_node.len()).filter(granted)
    }

    /// The marks that refused it, and their nodes.
    pub(super) fn marks(&self) -> impl Iterator<Item = (usize, HolderId)> {
        self.by_node.iter().enumerate().filter_map(|(node, reply)| match reply {
            NodeReply::Held { holder: Some(holder), .. } if holder.done => Some((node, holder.id)),
            _ => None,
        })
    }

    /// The nodes that granted the lock, or whose reply is unknown.
    pub(super) fn may_have_granted(&self) -> impl Iterator<Item = usize> {
        let held = |node: &usize| matches!(self.by_node[*node], NodeReply::Held { .. });
        (0..self.by_node.len()).filter(move |node| !held(node))
    }

    /// The error for an acquisition whose outcome is unknown.
    pub(super) fn outage_error(&self) -> StoreError {
        let errors = || {
            self.by_node.iter().filter_map(|reply| match reply {
                NodeReply::Unknown(error) => Some(error),
                _ => None,
            })
        };
        let (count, nodes) = (errors().count(), self.by_node.len());
        let first = errors().next().map(ToString::to_string).unwrap_or_default();
        let error = StoreError::new(format!(
            "{count} of {nodes} servers did not reply, and {} must grant the lock; the first error: {first}",
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
        elapsed: Duration,
        random: f64,
    ) -> (Option<Box<Holder>>, Duration) {
        let mut leases: Vec<_> = self.by_node.iter().filter_map(NodeReply::held).collect();
        leases.sort_by_key(|(_, recheck_after)| *recheck_after);
        let granted = self.granted().count();
        let missing = self.needed.saturating_sub(granted).max(1);
        let recheck_after =
            leases.get(missing - 1).map_or(MAX_RECHECK, |(_, recheck_after)| *recheck_after);
        let holders: Vec<_> = leases.iter().filter_map(|(holder, _)| *holder).collect();
        let same = |one: &&Holder| holders.iter().filter(|other| one.is_same(other)).count();
        // Of several marks, the one that most nodes have is that of the claim that did the work.
        let exactly = |one: &&Holder| holders.iter().filter(|other| one.id == other.id).count();
        let holder = holders.iter().copied().max_by_key(|one| (same(one), exactly(one)));
        let silent = self.by_node.len() - granted - leases.len();
        // As far as is known, no process has enough nodes.
        let split = granted > 0 && holder.is_none_or(|holder| same(&holder) + silent < self.needed);
        let recheck_after = match split {
            true => recheck_after.min(elapsed.mul_f64(1.0 + 4.0 * random) + SPREAD.mul_f64(random)),
            false => recheck_after,
        };
        // A mark that fewer nodes have than a lock needs may never have been confirmed.
        let is_confirmed = holder.is_some_and(|holder| same(&holder) >= self.needed);
        let ends = |holder: &Holder| {
            holders.iter().filter(|one| one.is_same(holder)).filter_map(|one| one.remaining).min()
        };
        let holder = holder.map(|holder| Holder { remaining: ends(holder), ..holder.clone() });
        let holder = if is_confirmed { holder } else { holder.map(Holder::not_done) };
        (holder.map(Box::new), recheck_after)
    }

    fn count_of(&self, is: impl Fn(&NodeReply) -> bool) -> usize {
        self.by_node.iter().filter(|reply| is(reply)).count()
    }
}

impl NodeReply {
    fn is_done(&self) -> bool {
        matches!(self, Self::Held { holder: Some(holder), .. } if holder.done)
    }

    fn held(&self) -> Option<(Option<&Holder>, Duration)> {
        match self {
            Self::Held { holder, recheck_after } => Some((holder.as_deref(), *recheck_after)),
            _ => None,
        }
    }
}

/// Processes that asked at the same time spread their retries over this time.
const SPREAD: Duration = Duration::from_millis(10);
