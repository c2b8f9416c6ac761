//! Which process runs this code. A copy that `fork(2)` made has its parent's memory, and neither its
//! threads nor connections of its own.

use forkguard::Guard;

use crate::Error;

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

    /// An error, unless this code still runs in that process.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_current() { Ok(()) } else { Err(forked()) }
    }
}

#[cold]
fn forked() -> Error {
    Error::InvalidOptions(
        "this lock manager was made before a `fork`, in another process, whose connections and \
         threads it needs: connect one in this process, on a runtime that was started after the fork"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a fork does to it, `node fork` shows.
    #[test]
    fn a_process_knows_itself() {
        for process in [Process::current(), Process::Id(std::process::id())] {
            assert!(process.is_current() && process.check().is_ok(), "{process:?}");
        }
        let other = Process::Id(std::process::id() + 1);
        let Err(Error::InvalidOptions(sentence)) = other.check() else { panic!("it is another") };
        assert!(sentence.contains("fork"), "{sentence}");
    }
}
