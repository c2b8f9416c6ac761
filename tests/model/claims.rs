//! What the models of the wait queue (`queue.rs`) and of the free path (`free_path.rs`) have in common: the claims and
//! their processes.
//!
//! Each model has a state, steps and faults of its own: the protocols differ, and a rule that both have is checked in both.
//! What both mean by the same word is here, so that a sentence of one model means the same in the other. `queue.rs` is the
//! queue of a key, `names.rs` tells which states differ in names only, and `wait.rs` measures how long a living waiter
//! waits.

pub(crate) mod names;
pub(crate) mod queue;
pub(crate) mod wait;

/// How many claims a state has room for.
pub(crate) const CLAIMS: usize = 3;
/// How many keys a state has room for.
pub(crate) const KEYS: usize = 2;

/// After how many ticks a process asks again that got no answer.
pub(crate) const RETRY: u8 = 1;

/// With what a claim may share its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
    Permits(usize),
}

impl Mode {
    /// Whether a claim of this mode could have a key that claims of these modes hold.
    pub(crate) fn admits(self, mut holders: impl Iterator<Item = Self> + Clone) -> bool {
        match self {
            Self::Exclusive => holders.next().is_none(),
            Self::Shared => holders.all(|mode| mode == self),
            Self::Permits(permits) => {
                holders.clone().all(|mode| mode == self) && holders.count() < permits
            }
        }
    }

    /// Whether claims of these modes must not hold one key together.
    pub(crate) fn conflict(mut holders: impl Iterator<Item = Self> + Clone) -> bool {
        let all = holders.clone();
        holders.any(|mode| match mode {
            Self::Exclusive => all.clone().count() > 1,
            Self::Shared => all.clone().any(|other| other != mode),
            Self::Permits(permits) => all.clone().count() > permits,
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Process {
    #[default]
    Runs,
    Stopped,
    Dead,
}

/// Where a claim is, as its process sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    #[default]
    NotAsked,
    Asking,
    /// It was refused, or is unsure: it waits for a grant, or until it is time to ask again.
    Waiting,
    Holding,
    /// It gives back what it has, or may have.
    Leaving,
    /// The store has answered that.
    Over,
}

impl Phase {
    /// The claim waits for its locks.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Asking | Self::Waiting)
    }
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wrong {
    Conflict,
    TokenNotAbove,
    Overtaken,
    Forgotten,
    PlaceLost,
    RefusedBySelf,
    RefusedByDead,
    NotServed,
    LeftBehind,
    /// A lock with waiters, of the free path: the store's queue needs no lock.
    Absent,
    /// A holder that renews: only the free path has renewals.
    ToldLost,
}

impl Wrong {
    /// The words of the tests.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Conflict => "two hold that must not",
            Self::TokenNotAbove => "a token is not above an earlier one",
            Self::Overtaken => "a living claim is overtaken",
            Self::Forgotten => "a living claim is dropped",
            Self::PlaceLost => "a claim loses its place",
            Self::RefusedBySelf => "a claim is refused what it has",
            Self::RefusedByDead => "a claim is refused because of the dead",
            Self::NotServed => "a claim is not served though it could be",
            Self::LeftBehind => "something is left behind",
            Self::Absent => "a lock that has waiters is absent",
            Self::ToldLost => "a holder is told that it lost what it has",
        }
    }
}

/// What ends by itself is kept as the number of ticks until then.
pub(crate) fn pass(ticks: &mut u8) {
    *ticks = ticks.saturating_sub(1);
}

/// How people name a key.
pub(crate) fn letter(key: usize) -> char {
    if key == 0 { 'a' } else { 'b' }
}
