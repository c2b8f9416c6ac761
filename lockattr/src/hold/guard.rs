//! The guard that owns a hold and releases it on every exit path.

mod blocking;
mod destination;
mod done;
mod held;
mod reader_group;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::time::Instant;
use tracing::Span;

use crate::hold::chain::{ChainPosition, Reentry};
use crate::hold::scope::Scoped;
use crate::hold::yield_to_others::yield_to_others;
use crate::lock::key::LockKey;
use crate::lock::site::Site;
use crate::observe::{self, HoldObservation};
use crate::{Error, Lease, LostReason};
use held::OwnedLease;
pub(crate) use reader_group::ReaderGroup;

/// Owns a hold: the lock is held until the guard is released or dropped, or the lease is lost.
///
/// Dereferences to [`Lease`]. [`release`](Self::release) releases the lock and returns the outcome.
/// Dropping the guard releases the lock as well, a little later and without a result. If the
/// runtime is ending or has ended, a thread does this and the drop waits for it. If the store
/// cannot be reached, all such drops together wait for at most one second.
///
/// A process that was forked from the holder does not hold the lock: there
/// [`ensure_held`](Lease::ensure_held) returns [`Error::Lost`], and dropping the copy of the guard
/// releases nothing.
///
/// A leaked guard ([`std::mem::forget`]) is renewed for as long as its manager's watchdog runs,
/// unless `max_hold` limits it.
///
/// A guard alone does not make later calls nested: run them in [`scope`](Self::scope), or use
/// [`with_lock`](crate::LockManager::with_lock).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// let guard = manager.acquire("product:42", LockOptions::new()).await?;
/// assert_eq!(guard.key(), "product:42");
/// guard.ensure_held()?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct LockGuard {
    ownership: Ownership,
    /// With several keys, the holds that were re-entered: the guard leaves them when it is dropped.
    reentered: Vec<LockGuard>,
    /// Observes the hold, if there is an observer. The last field: by the time it is dropped, it is
    /// decided how the hold ended.
    observation: HoldObservation,
}

/// What a guard owns, and how it releases it.
enum Ownership {
    Lock(Lease, OwnedLease),
    /// The permission to be inside the hold around it; dropping that leaves the hold.
    Reentry(Reentry),
}

impl LockGuard {
    pub(crate) fn reentered(reentry: Reentry) -> Self {
        Self::of(Ownership::Reentry(reentry))
    }

    fn of(ownership: Ownership) -> Self {
        Self { ownership, reentered: Vec::new(), observation: HoldObservation::default() }
    }

    fn lease(&self) -> &Lease {
        match &self.ownership {
            Ownership::Lock(lease, _) => lease,
            Ownership::Reentry(reentry) => reentry.lease(),
        }
    }

    /// The same, for this kind of lock.
    pub(crate) fn at(self, site: Option<Site>) -> Self {
        let frame = self.lease().frame();
        frame.hold().set_template(observe::template(site));
        if let Some(site) = site {
            frame.set_site(site);
        }
        self
    }

    /// Adds an observer, from here to the end of the hold.
    pub(crate) fn watch(&mut self, observation: HoldObservation) {
        self.observation = observation;
    }

    pub(crate) fn span(&self) -> Option<&Span> {
        self.observation.span()
    }

    /// The same, with other keys that were re-entered.
    pub(crate) fn with_reentered(mut self, reentered: Vec<LockGuard>) -> Self {
        if !reentered.is_empty() {
            let siblings = reentered.iter().map(|guard| guard.lease().frame().clone());
            self.lease().frame().add_siblings(siblings);
        }
        self.reentered = reentered;
        self
    }

    /// Releases the lock and waits for the answer.
    ///
    /// The guard of a nested call releases nothing in the store: the outermost guard does.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lock was no longer held, so that another caller may have worked at
    /// the same time; [`Error::Store`] if the store could not be reached. Then the manager keeps
    /// trying until the lease expires.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the release still happens.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{Error, LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// manager.acquire("stock", LockOptions::new()).await?.release().await?;
    ///
    /// let ttl = Duration::from_millis(20);
    /// let short = manager.acquire("stock", LockOptions::new().ttl(ttl).renew(false)).await?;
    /// tokio::time::sleep(ttl).await;
    /// assert!(matches!(short.release().await, Err(Error::Lost { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(mut self) -> Result<(), Error> {
        self.observation.done();
        let held = self.lease().ensure_held();
        let released = match &mut self.ownership {
            Ownership::Reentry(_) => held,
            Ownership::Lock(_, owned) => {
                let answer = owned.release().await;
                held.and(answer)
            }
        };
        self.observation.released(&released);
        released
    }

    /// Releases the lock without waiting for the answer: when this returns, the store's client has
    /// the release.
    pub(crate) async fn release_in_background(mut self) -> Result<(), Error> {
        self.hand_release_to_client().await.0
    }

    /// The same; when this returns, the client had a chance to write the release to its connection.
    pub(crate) async fn release_until_sent(mut self) -> Result<(), Error> {
        let (held, is_pending) = self.hand_release_to_client().await;
        if is_pending {
            yield_to_others().await;
        }
        held
    }

    async fn hand_release_to_client(&mut self) -> (Result<(), Error>, bool) {
        self.observation.done();
        let held = self.lease().ensure_held();
        let is_pending = match &mut self.ownership {
            Ownership::Lock(_, owned) => owned.release_in_background().await,
            Ownership::Reentry(_) => false,
        };
        (held, is_pending)
    }

    /// Runs `future` as part of this hold: calls inside it that want the same key re-enter the
    /// hold, and [`current`](crate::current) finds this lease.
    ///
    /// A scope returns what `future` returns, so it cannot report an error of its own. If the lease
    /// has ended before `future` is first polled, the future runs without the lock:
    /// [`current`](crate::current) and [`held`](crate::held) find no lease, annotated calls that
    /// want the key get [`Error::Lost`], and a warning event is emitted. Call
    /// [`ensure_held`](Lease::ensure_held) as the first line, or use
    /// [`with_lock`](crate::LockManager::with_lock), whose body never begins without the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops `future` and nothing else.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let guard = manager.acquire("stock", LockOptions::new()).await?;
    /// let nested = guard.scope(manager.acquire("stock", LockOptions::new())).await?;
    /// assert_eq!((nested.depth(), nested.fencing_token()), (2, guard.fencing_token()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        Scoped::new(self.position(), future)
    }

    /// The position in the call chain of code that runs as part of this hold.
    pub(crate) fn position(&self) -> ChainPosition {
        let innermost = self.lease().frame().clone();
        if self.reentered.is_empty() {
            return ChainPosition::inside([innermost]);
        }
        let siblings = self.reentered.iter().map(|guard| guard.lease().frame().clone());
        ChainPosition::inside(siblings.chain([innermost]))
    }

    /// Releases what is left of a lease that has ended: its keys, and other keys that were
    /// re-entered.
    pub(crate) async fn release_ended(mut self) -> (Arc<[LockKey]>, Vec<LockGuard>) {
        let reentered = std::mem::take(&mut self.reentered);
        let keys = self.lease().frame().hold().claim().shared_keys().clone();
        // The loss is already known.
        self.release_in_background().await.ok();
        (keys, reentered)
    }

    /// With several keys, whether the re-entered holds are still held.
    pub(crate) fn reentered_are_held(&self) -> bool {
        self.reentered.iter().all(|reentry| reentry.ensure_held().is_ok())
    }

    /// Whether a shutdown of its manager ended the hold.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.lease().frame().hold().check(Instant::now()) == Err(LostReason::ShutDown)
    }

    /// Whether the lock belongs to the process from which this one was forked.
    pub(crate) fn belongs_to_parent(&self) -> bool {
        !self.lease().frame().hold().is_of_this_process()
    }

    /// Whether this guard is that of a nested call, which releases nothing in the store.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(self.ownership, Ownership::Reentry(_))
    }
}

impl Deref for LockGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        self.lease()
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockGuard").field(self.lease()).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::{LockManager, LockOptions};

    /// Red without: `Debug` of either type. An owner token in one would allow any reader of a log
    /// to release the lock.
    #[tokio::test]
    async fn a_guard_shows_in_a_log_what_it_holds_and_not_by_which_token() {
        let manager = LockManager::connect("memory://").await.unwrap();
        let guard = manager.acquire("product:42", LockOptions::new()).await.unwrap();
        let nested = guard.scope(manager.acquire("product:42", LockOptions::new())).await.unwrap();
        let token = guard.lease().frame().hold().claim().token().to_string();
        for (guard, depth) in [(&guard, "depth: 1,"), (&nested, "depth: 2,")] {
            let shown = format!("{guard:?}");
            assert!(shown.starts_with(r#"LockGuard(Lease { key: "product:42""#), "{shown}");
            assert!(shown.contains(depth), "{shown}");
            assert!(!shown.contains(&token) && !shown.contains(&token[16..]), "{shown}");
        }
    }
}
