//! What the models of the wait queue (`queue.rs`) and of the free path (`free_path.rs`) share: the
//! claims and their processes.
//!
//! Each model has its own state, steps and faults, because the protocols differ. A rule of both
//! protocols is checked in both models. What is here means the same in both. `queue.rs` is the
//! queue of a key, `names.rs` decides which states differ in names only, and `wait.rs` measures how
//! long a living waiter waits.

pub(crate) mod names;
pub(crate) mod queue;
pub(crate) mod wait;

/// The number of claims in a state.
pub(crate) const CLAIMS: usize = 3;
/// The number of keys in a state.
pub(crate) const KEYS: usize = 2;

/// The ticks until a process repeats a request without a reply.
pub(crate) const RETRY: u8 = 1;

/// How a claim shares its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
    Permits(usize),
}

impl Mode {
    /// Returns whether a claim of this mode could hold a key together with claims of these modes.
    pub(crate) fn admits(self, mut holders: impl Iterator<Item = Self> + Clone) -> bool {
        match self {
            Self::Exclusive => holders.next().is_none(),
            Self::Shared => holders.all(|mode| mode == self),
            Self::Permits(permits) => {
                holders.clone().all(|mode| mode == self) && holders.count() < permits
            }
        }
    }

    /// Returns whether claims of these modes must not hold one key together.
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

/// The phase of a claim, as its process knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    #[default]
    New,
    Requested,
    /// It was refused, or its outcome is unknown: it waits for a grant, or for the time to ask
    /// again.
    Waiting,
    Holding,
    /// It releases what it has, or may have.
    Leaving,
    /// The store has confirmed the release.
    Over,
}

impl Phase {
    /// Returns whether the claim waits for its locks.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Requested | Self::Waiting)
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
    /// A lock with waiters is absent. Only in the free path: the store's queue needs no lock.
    Absent,
    /// A holder is wrongly notified of a loss. Only in the free path, which has renewals.
    ReportedLost,
}

impl Wrong {
    /// The text that the tests compare.
    pub(crate) fn text(self) -> &'static str {
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
            Self::ReportedLost => "a holder is notified of the loss of a lock that it has",
        }
    }
}

/// Moves a deadline one tick closer. Deadlines are stored as the number of ticks until then.
pub(crate) fn pass(ticks: &mut u8) {
    *ticks = ticks.saturating_sub(1);
}

/// The name of a key in output.
pub(crate) fn letter(key: usize) -> char {
    if key == 0 { 'a' } else { 'b' }
}
