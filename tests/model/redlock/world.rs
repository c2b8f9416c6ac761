//! A state of the model: three nodes, the attempts of some clients, and the time.

use std::fmt;
use std::hash::{Hash, Hasher};

/// The number of attempts in a state.
pub(crate) const ATTEMPTS: usize = 3;
pub(crate) const NODES: usize = 3;
pub(crate) const MAJORITY: usize = 2;

/// Everything that decides what can happen next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) nodes: [Node; NODES],
    pub(crate) attempts: [Attempt; ATTEMPTS],
    pub(crate) now: u8,
    /// The largest token that was issued before the start.
    pub(crate) before: u8,
    /// How often other locks may still advance a counter.
    pub(crate) others: u8,
    /// How often a node may still restart.
    pub(crate) restarts: u8,
    pub(crate) wrong: Option<Wrong>,
}

/// A node: the lock, and the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    /// The owner token in the lock, 0 for none.
    pub(crate) owner: u8,
    pub(crate) fence: u8,
    /// When the lock was granted.
    pub(crate) since: u8,
    /// When it restarted, if it is not counted yet.
    pub(crate) restarted: Option<u8>,
    /// The state of each attempt's request to it.
    pub(crate) requests: [Request; ATTEMPTS],
}

/// A request on its way to a node and back.
///
/// A reply that was lost, or has not arrived yet, is one that the client ignores when it decides. A
/// request that was lost or refused stays `Sent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Request {
    #[default]
    Sent,
    /// The lock was granted, with this number.
    Answered(u8),
    /// The client took the maximum from this reply and others.
    Counted,
    /// The node has accepted the token that was written back.
    Accepted,
    /// It has no more effect.
    Over,
}

/// One attempt of a client to acquire the lock from a majority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) phase: Phase,
    /// The fencing token, once it is known.
    pub(crate) token: u8,
    /// The largest token that was issued before this attempt began.
    pub(crate) floor: u8,
    pub(crate) hint: u8,
    pub(crate) began: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    NotBegun,
    Requested,
    WritingBack,
    Issued,
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Twice,
    NotAbove,
    OutOfOrder,
    BothHold,
}

impl World {
    /// Returns the number of attempts in this phase.
    pub(crate) fn count(&self, phase: Phase) -> usize {
        self.attempts.iter().filter(|attempt| attempt.phase == phase).count()
    }

    /// Returns whether the client still works on the attempt.
    pub(crate) fn under_way(&self, attempt: usize) -> bool {
        matches!(self.attempts[attempt].phase, Phase::Requested | Phase::WritingBack)
    }

    /// Returns the largest token that was issued so far.
    pub(crate) fn largest(&self) -> u8 {
        let issued = self.attempts.iter().filter(|attempt| attempt.phase == Phase::Issued);
        issued.map(|attempt| attempt.token).fold(self.before, u8::max)
    }

    /// Returns the number of nodes whose request of `attempt` satisfies `such`.
    pub(crate) fn nodes_where(&self, attempt: usize, such: impl Fn(Request) -> bool) -> usize {
        self.nodes.iter().filter(|node| such(node.requests[attempt])).count()
    }
}

/// Few words, because a search hashes each state once for each path to it.
impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for node in &self.nodes {
            let [a, b, c] = node.requests.map(Request::number);
            let restarted = node.restarted.map_or(0, |restarted| restarted + 1);
            let bytes = [node.owner, node.fence, node.since, restarted, a, b, c, 0];
            state.write_u64(u64::from_le_bytes(bytes));
        }
        for it in &self.attempts {
            let bytes = [it.phase as u8, it.token, it.floor, it.hint, it.began, 0, 0, 0];
            state.write_u64(u64::from_le_bytes(bytes));
        }
        let wrong = self.wrong.map_or(0, |wrong| wrong as u8 + 1);
        let bytes = [self.now, self.before, self.others, self.restarts, wrong, 0, 0, 0];
        state.write_u64(u64::from_le_bytes(bytes));
    }
}

impl Request {
    fn number(self) -> u8 {
        match self {
            Self::Sent => 0,
            Self::Counted => 1,
            Self::Accepted => 2,
            Self::Over => 3,
            Self::Answered(fence) => 4 + fence,
        }
    }
}

pub(crate) const NODE_NAMES: [char; NODES] = ['A', 'B', 'C'];

/// Prints the counters, with the owner token of each lock.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (node, name) in self.nodes.iter().zip(NODE_NAMES) {
            write!(f, "{name} {}", node.fence)?;
            match node.owner {
                0 => write!(f, "     ")?,
                owner => write!(f, " ({owner}) ")?,
            }
        }
        if self.now > 0 { write!(f, "t = {}", self.now) } else { Ok(()) }
    }
}
