//! What a call comes back with, when its body, its lease or its release went wrong.

mod begins;
mod lost;
mod overrun;
mod panics;
mod release;

use std::time::Duration;

use lockattr::Error;

const SECOND: Duration = Duration::from_secs(1);

/// A user's own error, with room for a lock's.
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

/// What a body does last.
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

    /// Whether `outcome` is the body's own, untouched.
    fn is(self, outcome: &Result<u32, Failure>) -> bool {
        matches!((self, outcome), (Self::Well, Ok(17)) | (Self::Failing, Err(Failure::Own)))
    }
}
