//! The outcome of a call when its body, its lease or its release fails.

mod begins;
mod lost;
mod overrun;
mod panics;
mod release;

use std::time::Duration;

use lockattr::Error;

const SECOND: Duration = Duration::from_secs(1);

/// A user's error type that can wrap a lock error.
#[derive(Debug)]
enum Failure {
    Own,
    Lock(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

/// How a body ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Well,
    Failing,
}

impl End {
    const BOTH: [Self; 2] = [Self::Well, Self::Failing];

    fn outcome(self) -> Result<u32, Failure> {
        match self {
            Self::Well => Ok(17),
            Self::Failing => Err(Failure::Own),
        }
    }

    /// Returns whether `outcome` is the body's own, unchanged.
    fn is(self, outcome: &Result<u32, Failure>) -> bool {
        matches!((self, outcome), (Self::Well, Ok(17)) | (Self::Failing, Err(Failure::Own)))
    }
}
