//! What a test sees of one acquisition.

use std::fmt;
use std::time::Duration;

use crate::{FencingToken, LostReason};

/// One acquisition, as far as it has come: by an annotated function, by hand, or of a nested call
/// that entered again.
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
    /// What was asked for; of several keys all, with commas between, as errors name them.
    pub key: String,
    /// The attribute's template, or what [`LockOptions::template`] said.
    ///
    /// [`LockOptions::template`]: crate::LockOptions::template
    pub template: Option<&'static str>,
    /// The annotated function, or what [`LockOptions::function`] said.
    ///
    /// [`LockOptions::function`]: crate::LockOptions::function
    pub function: Option<&'static str>,
    /// The service of the manager that was asked: which [process](super::TestLocks::another_process)
    /// of the test it was.
    pub service: String,
    /// Whether it was a nested call's, that entered a hold of its own call chain again.
    pub nested: bool,
    /// The number of the hold, once there is one; a nested call has that of the hold around it.
    pub fencing_token: Option<FencingToken>,
    /// From the call to the lock, to the refusal, or to now.
    pub waited: Duration,
    /// From the lock to its end, or to now.
    pub held: Option<Duration>,
    /// How far it is, or what became of it.
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

/// How far an [`Acquisition`] is, or what became of it.
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
    /// The store is being asked.
    Asking,
    /// Somebody else has the lock, or comes first: it waits in the queue, or pauses before it asks
    /// again.
    Waiting,
    /// It has the lock.
    Held,
    /// It had the lock, and gave it back or handed it on.
    Released,
    /// It had the lock, and lost it.
    Lost(LostReason),
    /// Refused: another holder had it still when its wait budget was spent.
    Contended,
    /// Refused: the store could not be asked.
    Unavailable,
    /// Refused: the manager was shut down.
    ShutDown,
    /// Refused: what was asked for makes no sense here.
    Invalid,
    /// It would have waited forever, in a cycle.
    Deadlock,
    /// Its caller went away before it was answered.
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
