//! Identifies the process that runs this code. A copy that `fork(2)` made has its parent's memory,
//! but neither its threads nor connections of its own.

use forkguard::Guard;

/// The process in which this value was made.
#[derive(Clone, Debug)]
pub(crate) enum Process {
    /// The number of forks that led to it. The C library counts them, so a check costs no system
    /// call.
    Forks(Guard),
    /// Its process id, where forks are not counted.
    Id(u32),
}

impl Process {
    pub(crate) fn current() -> Self {
        Guard::try_new().map_or_else(|_| Self::Id(std::process::id()), Self::Forks)
    }

    /// Whether this code still runs in that process, and not in a fork of it.
    pub(crate) fn is_current(&self) -> bool {
        match self {
            // A check updates the counter that it was called on, and `self` must not change.
            Self::Forks(forks) => !forks.clone().detected_fork(),
            Self::Id(id) => *id == std::process::id(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The behaviour after a fork is checked by `node fork`.
    #[test]
    fn a_process_knows_itself() {
        for process in [Process::current(), Process::Id(std::process::id())] {
            assert!(process.is_current(), "{process:?}");
        }
        let other = Process::Id(std::process::id() + 1);
        assert!(!other.is_current(), "{other:?}");
    }
}
