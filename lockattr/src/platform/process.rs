//! Which process runs this code. A copy that `fork(2)` made has its parent's memory, and neither its
//! threads nor connections of its own.

use forkguard::Guard;

/// The process in which this was made.
#[derive(Clone, Debug)]
pub(crate) enum Process {
    /// How often a fork had led to it: the C library counts, so a look costs no system call.
    Forks(Guard),
    /// Its number, where nothing counts.
    Id(u32),
}

impl Process {
    /// The one that runs this code.
    pub(crate) fn current() -> Self {
        Guard::try_new().map_or_else(|_| Self::Id(std::process::id()), Self::Forks)
    }

    /// Whether this code still runs in that process, and not in one that was forked from it.
    pub(crate) fn is_current(&self) -> bool {
        match self {
            // A look at the counter notes what it saw, and this is to stay as it was made.
            Self::Forks(forks) => !forks.clone().detected_fork(),
            Self::Id(id) => *id == std::process::id(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a fork does to it, `node fork` shows.
    #[test]
    fn a_process_knows_itself() {
        for process in [Process::current(), Process::Id(std::process::id())] {
            assert!(process.is_current(), "{process:?}");
        }
        let other = Process::Id(std::process::id() + 1);
        assert!(!other.is_current(), "{other:?}");
    }
}
