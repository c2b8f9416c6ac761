//! The schemes that compute a fencing token, and the circumstances under which they are tried.

/// How a client computes a token from the replies of a majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Issues the largest reply.
    Maximum,
    /// Issues the largest reply if a majority sent exactly that; otherwise the attempt fails.
    Agreed,
    /// Writes the largest reply to the nodes, and issues it once a majority has accepted.
    WriteBack {
        /// Skips the write if a majority sent exactly that reply.
        at_once: bool,
        accepts: Accepts,
        counts: Counts,
    },
}

impl Scheme {
    /// The scheme of `redlock://`.
    pub(crate) const OURS: Self =
        Self::WriteBack { at_once: true, accepts: Accepts::Owner, counts: Counts::Answered };
}

/// From which clients a node accepts a token that is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    Anybody,
    /// Only while the lock there still has the writer's owner token.
    Owner,
    /// And only while the counter there has not passed the token.
    OwnerNotPassed,
}

/// Which of the nodes that have accepted count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Nodes whose replies the maximum was taken from.
    Answered,
    /// Also a node that granted the lock later.
    Any,
}

/// What clients send as a hint, so that `fence = max(fence + 1, hint)`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hints {
    /// Any of these, whatever was sent before.
    Any(&'static [u8]),
    /// Each node counts with any of these, independently of the others: as if it used its own clock
    /// instead of a hint that is too far ahead.
    Each(&'static [u8]),
    /// The client's clock when the attempt begins: the time, or up to `ahead` ticks more. One tick
    /// adds `tick` to the hint.
    Clock { ahead: u8, tick: u8 },
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// A token is issued twice, or is not above one that was issued before its attempt began.
    Fencing,
    /// A token is not above every token issued before it, whenever its attempt began.
    Order,
    /// Two attempts hold the lock at the same time.
    Exclusion,
}

/// What a restarted node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restarts {
    /// Its locks are lost; its counter is kept.
    Durable,
    /// It comes back empty.
    Empty,
    /// It comes back empty and reads the others' counters at once.
    LearnsAtOnce,
    /// It comes back empty and reads the others' counters when its rest is over.
    LearnsAfterRest,
}

/// A scheme and its circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) scheme: Scheme,
    pub(crate) checks: Checks,
    /// The initial counters of the nodes.
    pub(crate) starts: &'static [[u8; 3]],
    /// The owner token of each attempt, in the order in which the attempts begin.
    pub(crate) tokens: &'static [u8],
    /// How many attempts may be under way at a time.
    pub(crate) together: usize,
    pub(crate) hints: Hints,
    /// How often locks of other names advance a counter.
    pub(crate) others: u8,
    /// A renewal writes the token back to a node whose lock is still the holder's.
    pub(crate) renewals: bool,
    /// A later attempt counts the replies to an earlier one with its token.
    pub(crate) mixes: bool,
    /// A node executes the attempts of one token in the order in which they were sent.
    pub(crate) in_order: bool,
    /// How often nodes may restart, in total.
    pub(crate) restarts: u8,
    pub(crate) restart: Restarts,
    pub(crate) clock: Clock,
}

/// Time, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Nothing happens later.
    pub(crate) until: u8,
    /// The length of a lease: at the node from the execution of the request, for its holder from
    /// before it was sent.
    pub(crate) ttl: u8,
    /// By how much a lease may be shorter at a node, whose clock is faster. If this equals `ttl`, a
    /// lease may end at any time.
    pub(crate) drift: u8,
    /// By how much its holder assumes it to be shorter.
    pub(crate) margin: u8,
    /// For how long a restarted node is not counted.
    pub(crate) rest: u8,
}

impl Clock {
    /// No time: leases may end at any step, and attempts may take forever.
    pub(crate) const NONE: Self = Self { until: 0, ttl: 1, drift: 1, margin: 0, rest: 0 };
}

/// Every gap between three counters; the value they start from makes no difference. A gap of four
/// covers larger ones here: no counter gets that far ahead by itself.
pub(crate) const GAPS: &[[u8; 3]] = &[
    [0, 0, 0],
    [0, 0, 1],
    [0, 0, 2],
    [0, 0, 3],
    [0, 0, 4],
    [0, 1, 1],
    [0, 1, 2],
    [0, 1, 3],
    [0, 1, 4],
    [0, 2, 2],
    [0, 2, 3],
    [0, 2, 4],
    [0, 3, 3],
    [0, 3, 4],
    [0, 4, 4],
];

/// The defaults, which tests override: two attempts of two clients, with one node ahead.
pub(crate) const PLAIN: Setting = Setting {
    scheme: Scheme::OURS,
    checks: Checks::Fencing,
    starts: &[[5, 0, 0]],
    tokens: &[1, 2],
    together: usize::MAX,
    hints: Hints::Any(&[0]),
    others: 0,
    renewals: false,
    mixes: false,
    in_order: false,
    restarts: 0,
    restart: Restarts::Empty,
    clock: Clock::NONE,
};
