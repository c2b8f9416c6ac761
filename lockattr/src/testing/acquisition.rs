//! The test's view of one acquisition.

use std::fmt;
use std::time::Duration;

use crate::{FencingToken, LostReason};

/// One acquisition in its current state: by an annotated function, by a direct call, or of a nested
/// call that re-entered a hold.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::testing::{Outcome, TestLocks};
/// use lockattr::{Error, distributed_lock};
///
/// #[distributed_lock(key = "product:<id>")]
/// async fn deduct(id: u64) -> Result<(), Error> {
///     Ok(())
/// }
///
/// let locks = TestLocks::new();
/// locks.scope(deduct(42)).await?;
///
/// let [once] = &locks.acquisitions()[..] else { panic!("{:#?}", locks.acquisitions()) };
/// assert_eq!((&*once.key, once.template), ("product:42", Some("product:<id>")));
/// assert_eq!(once.outcome, Outcome::Released);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acquisition {
    /// The requested key; several keys are separated by commas, as in errors.
    pub key: String,
    /// The attribute's template, or the value of [`LockOptions::template`].
    ///
    /// [`LockOptions::template`]: crate::LockOptions::template
    pub template: Option<&'static str>,
    /// The annotated function, or the value of [`LockOptions::function`].
    ///
    /// [`LockOptions::function`]: crate::LockOptions::function
    pub function: Option<&'static str>,
    /// The service of the manager that was called: identifies the
    /// [process](super::TestLocks::another_process) of the test.
    pub service: String,
    /// Whether it is a nested call that re-entered a hold of its own call chain.
    pub nested: bool,
    /// The fencing token of the hold, once there is one; a nested call has that of the hold around
    /// it.
    pub fencing_token: Option<FencingToken>,
    /// The time from the call to the lock, to the refusal, or to now.
    pub waited: Duration,
    /// The time from the lock to its end, or to now.
    pub held: Option<Duration>,
    /// Its state or its result.
    pub outcome: Outcome,
}

/// `` `product:42` (product:<id>) by shop::deduct on test: waiting ``
impl fmt::Display for Acquisition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.key)?;
        if let Some(template) = self.template {
            write!(f, " ({template})")?;
        }
        if let Some(function) = self.function {
            write!(f, " by {function}")?;
        }
        write!(f, " on {}: {}", self.service, self.outcome)
    }
}

/// The state of an [`Acquisition`], or its result.
///
/// ```
/// use lockattr::LostReason;
/// use lockattr::testing::Outcome;
///
/// assert_eq!(Outcome::Lost(LostReason::Taken).to_string(), "lost: the store no longer has this process as its holder");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The request to the store is under way.
    Asking,
    /// Another caller has the lock or is ahead: it waits in the queue, or pauses before its next
    /// attempt.
    Waiting,
    /// It has the lock.
    Held,
    /// It had the lock, and released it or handed it off.
    Released,
    /// It had the lock, and lost it.
    Lost(LostReason),
    /// Refused: another holder still had the lock when the wait budget ended.
    Contended,
    /// Refused: the store could not be reached.
    Unavailable,
    /// Refused: the manager was shut down.
    ShutDown,
    /// Refused: the request is invalid here.
    Invalid,
    /// Refused: it was part of a deadlock.
    Deadlock,
    /// Its caller dropped it before it had an outcome.
    Cancelled,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asking => "asking",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Released => "released",
            Self::Lost(reason) => return write!(f, "lost: {reason}"),
            Self::Contended => "contended",
            Self::Unavailable => "store unavailable",
            Self::ShutDown => "shut down",
            Self::Invalid => "invalid",
            Self::Deadlock => "deadlock",
            Self::Cancelled => "cancelled",
        })
    }
}
