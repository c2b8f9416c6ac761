//! The ways to a fencing token, and the circumstances under which they are tried.

/// How a client comes from the answers of a majority to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Issues the largest answer.
    Maximum,
    /// Issues the largest answer where a majority gave exactly that; else it has failed.
    Agreed,
    /// Writes the largest answer to the nodes, and issues it once a majority has accepted.
    WriteBack {
        /// Does without that where a majority gave exactly that answer.
        at_once: bool,
        accepts: Accepts,
        counts: Counts,
    },
}

impl Scheme {
    /// What `redlock://` does.
    pub(crate) const OURS: Self =
        Self::WriteBack { at_once: true, accepts: Accepts::Owner, counts: Counts::Answered };
}

/// From whom a node accepts what is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    Anybody,
    /// Only while the lock there still has the owner token of who writes.
    Owner,
    /// And only while the counter there has not passed the token.
    OwnerNotPassed,
}

/// Which nodes count that have accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Those whose answers the maximum was taken of.
    Answered,
    /// Also one that gave the lock later.
    Any,
}

/// What clients send as a hint, so that `fence = max(fence + 1, hint)`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hints {
    /// Any of these, whatever was sent before.
    Any(&'static [u8]),
    /// Each node counts by any of these, whatever the others do: as where it takes its own clock
    /// instead of a hint that is too far ahead of it.
    Each(&'static [u8]),
    /// What the client's clock shows when the attempt begins: the time, or up to `ahead` ticks more.
    /// One tick is so much of a hint.
    Clock { ahead: u8, tick: u8 },
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// A token is issued twice, or is not above one that was issued before its attempt began.
    Fencing,
    /// A token is not above every one that was issued before it was, whenever its attempt began.
    Order,
    /// Two attempts hold the lock at the same time.
    Exclusion,
}

/// What a node does that was started anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restarts {
    /// Nothing is left of its locks; its counter is as it was.
    Durable,
    /// It comes back empty.
    Empty,
    /// It comes back empty and asks the others at once for their counters.
    LearnsAtOnce,
    /// It comes back empty and asks the others for their counters when its rest is over.
    LearnsAfterRest,
}

/// A scheme and its circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) scheme: Scheme,
    pub(crate) checks: Checks,
    /// The counters of the nodes at first.
    pub(crate) starts: &'static [[u8; 3]],
    /// Whose owner token each attempt carries, in the order in which the attempts begin.
    pub(crate) tokens: &'static [u8],
    /// So many attempts are under way at a time.
    pub(crate) together: usize,
    pub(crate) hints: Hints,
    /// How often locks of other names advance a counter.
    pub(crate) others: u8,
    /// A renewal writes the token back where the lock is still the holder's.
    pub(crate) renewals: bool,
    /// A later attempt counts what an earlier one with its token was answered.
    pub(crate) mixes: bool,
    /// A node executes the attempts of one token in the order in which they were sent.
    pub(crate) in_order: bool,
    /// Which node restarts how often, all in all.
    pub(crate) restarts: u8,
    pub(crate) restart: Restarts,
    pub(crate) clock: Clock,
}

/// Time, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Nothing happens later.
    pub(crate) until: u8,
    /// The length of a lease, at the node from the execution of the request, for its holder from
    /// before it was sent.
    pub(crate) ttl: u8,
    /// By how much a lease may be shorter at a node: its clock is faster. With `ttl`, a lease may
    /// end at any time.
    pub(crate) drift: u8,
    /// By how much its holder takes it to be shorter.
    pub(crate) margin: u8,
    /// For how long a node that restarted is not counted.
    pub(crate) rest: u8,
}

impl Clock {
    /// No time: leases end whenever they like, and attempts may take forever.
    pub(crate) const NONE: Self = Self { until: 0, ttl: 1, drift: 1, margin: 0, rest: 0 };
}

/// Every gap there can be between three counters; what they are counted from makes no difference.
/// Four are as good as more for what is tried here: no counter gets so far ahead by itself.
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

/// Two attempts of two clients over one node that is ahead: all else is said by who uses it.
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
