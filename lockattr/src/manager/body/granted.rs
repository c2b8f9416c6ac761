//! What a body begins with: a lock granted for it, and how to acquire that again.

use tokio::time::Instant;

use crate::hold::chain;
use crate::hold::enter::enter;
use crate::lock::options::ResolvedOptions;
use crate::{Error, Lease, LockGuard, LockManager, OnLost};

#[derive(Debug)]
pub(crate) enum Start {
    Unlocked,
    /// A hold of the call's own chain that it re-entered. If that hold is lost, it cannot be
    /// acquired again from here.
    Nested(LockGuard, OnLost),
    /// A lock that was granted to the call. Boxed, because a nested call would otherwise move the
    /// space for it around.
    Granted(Box<Granted>),
}

impl Start {
    /// The guard of the lock, and what happens if it is lost.
    pub(super) fn hold(&self) -> Option<(&LockGuard, OnLost)> {
        match self {
            Self::Unlocked => None,
            Self::Nested(guard, on_lost) => Some((guard, *on_lost)),
            Self::Granted(granted) => Some((&granted.guard, granted.options.on_lost)),
        }
    }

    /// Releases the lock without running a body.
    #[cfg(feature = "share")]
    pub(crate) async fn release(self) {
        if let Self::Granted(granted) = self {
            // The caller has what it came for; a loss changes nothing.
            granted.guard.release_in_background().await.ok();
        }
    }
}

impl From<Granted> for Start {
    fn from(granted: Granted) -> Self {
        Self::Granted(Box::new(granted))
    }
}

/// A lock that was granted for a body, and the options of the call.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(super) guard: LockGuard,
    pub(super) options: ResolvedOptions,
    manager: LockManager,
    /// When the call began: its wait budget counts from here.
    began: Instant,
}

/// The guard of a nested call for a caller whose own code is the body.
pub(crate) fn nested_for_caller(guard: LockGuard) -> Result<LockGuard, Error> {
    enter(guard.frame(), None).map(drop)?;
    Ok(guard)
}

impl Granted {
    /// What `manager` granted to a call that began at `began`.
    pub(crate) fn new(
        guard: LockGuard,
        options: ResolvedOptions,
        manager: LockManager,
        began: Instant,
    ) -> Self {
        Self { guard, options, manager, began }
    }

    /// The guard for a caller whose own code is the body.
    pub(crate) async fn for_caller(mut self) -> Result<LockGuard, Error> {
        loop {
            let lost = match self.enter() {
                Ok(()) => return Ok(self.guard),
                Err(lost) => lost,
            };
            match self.options_for_retry() {
                // Boxed, or every acquisition would reserve the space for a second one.
                Some(options) => self = Box::pin(self.reacquire(options, lost)).await?,
                None => return Err(lost),
            }
        }
    }

    /// The same, on this thread.
    pub(crate) fn for_caller_blocking(mut self) -> Result<LockGuard, Error> {
        loop {
            let lost = match self.enter() {
                Ok(()) => return Ok(self.guard),
                Err(lost) => lost,
            };
            match self.options_for_retry() {
                Some(options) => self = self.reacquire_blocking(options, lost)?,
                None => return Err(lost),
            }
        }
    }

    fn enter(&self) -> Result<(), Error> {
        enter(self.guard.frame(), None).map(drop)
    }

    /// The options for acquiring the lock again after its lease ended too early. `None` if the loss
    /// is final: the wait budget is used up, the manager is shut down, or the hold of an outer call
    /// ended.
    pub(super) fn options_for_retry(&self) -> Option<ResolvedOptions> {
        let outer_ended = self.guard.is_nested() || self.guard.is_shut_down();
        let reentered_ended = !self.guard.reentered_are_held();
        if outer_ended || reentered_ended {
            return None;
        }
        self.options.remaining_after(self.began.elapsed())
    }

    /// Acquires the lock again with these options. On failure, returns the loss of the first lease;
    /// the error of the second attempt is only an event, because `on_busy` and `on_unavailable`
    /// were applied before.
    pub(super) async fn reacquire(
        self,
        options: ResolvedOptions,
        lost: Error,
    ) -> Result<Self, Error> {
        let (keys, reentered) = self.guard.release_ended().await;
        match self.manager.acquire_new(&options, keys).await {
            Ok(guard) => Ok(Self { guard: guard.with_reentered(reentered), ..self }),
            // Another caller has done the work meanwhile.
            Err(error @ Error::Done { .. }) => Err(error),
            Err(error) => {
                tracing::debug!(
                    error.message = %error,
                    "the lease ended before the body began, and the lock \
                     could not be acquired again");
                Err(lost)
            }
        }
    }

    /// The same, on this thread.
    pub(super) fn reacquire_blocking(
        self,
        options: ResolvedOptions,
        lost: Error,
    ) -> Result<Self, Error> {
        let (manager, key) = (self.manager.clone(), self.guard.key().to_owned());
        manager.wait_for(&key, self.reacquire(options, lost))
    }
}

/// The lease of the body that calls this. Only the body can get it, because the lock may be
/// acquired again before the body begins.
pub fn lease() -> Lease {
    chain::current().expect("`lease` is only called by a body that runs under its lock")
}
