//! The guard that owns a hold, and gives it back on every way out.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::time::Instant;

use crate::chain::{self, Frame, Turn};
use crate::hold::{Granted, Hold};
use crate::store::{self, Claim, Releasing};
use crate::watchdog::Watchdog;
use crate::{Error, Lease, LostReason};

/// Owns a hold: the lock is ours until the guard is released or dropped, or the lease is lost.
///
/// Dereferences to [`Lease`]. [`release`](Self::release) gives the lock back and tells how it
/// went; dropping gives it back as well, a little later and without an answer. Dropped with a
/// runtime that ends, or after that, it is given back by a thread, and the drop waits for it. A
/// store that is away holds up all such drops together for a second.
///
/// A guard that is leaked ([`std::mem::forget`]) is renewed for as long as its manager's watchdog
/// runs, unless `max_hold` says otherwise.
///
/// A guard does not by itself make the calls below it nested: run them in
/// [`scope`](Self::scope), or use [`with_lock`](crate::LockManager::with_lock).
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
#[must_use = "the lock is given back as soon as the guard is dropped"]
pub struct LockGuard {
    lease: Lease,
    grip: Grip,
}

/// How a guard lets go.
enum Grip {
    /// Of the lock itself.
    Lock(Owned),
    /// Of its turn inside the hold around it, by dropping it.
    Turn { _turn: Turn },
}

impl LockGuard {
    /// The guard of a lock just granted, and whether the watchdog was woken for it.
    pub(crate) fn granted(granted: Granted, watchdog: &Arc<Watchdog>) -> (Self, bool) {
        let (asked, ttl) = (granted.asked, granted.ttl);
        let hold = Arc::new(Hold::new(granted));
        let (id, woken) = watchdog.watch(&hold, asked, ttl);
        let frame = Arc::new(Frame::first(hold, watchdog.clone()));
        let grip = Grip::Lock(Owned { id, frame: frame.clone(), given_back: false });
        (Self { lease: Lease::new(frame), grip }, woken)
    }

    /// The guard of a nested call that entered again.
    pub(crate) fn reentered(turn: Turn) -> Self {
        let frame = Arc::new(turn.frame().nested());
        Self { lease: Lease::new(frame), grip: Grip::Turn { _turn: turn } }
    }

    /// Gives the lock back and waits for the answer.
    ///
    /// The guard of a nested call gives nothing back to the store: the outermost one does.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lock was no longer ours, so that somebody else may have worked at
    /// the same time; [`Error::Store`] if the store could not be asked, and then the manager goes
    /// on trying until the lease has ended by itself.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the lock is given back all the same.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
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
    pub async fn release(self) -> Result<(), Error> {
        let held = self.lease.ensure_held();
        match self.grip {
            Grip::Turn { .. } => held,
            Grip::Lock(mut owned) => {
                let answer = owned.release().await;
                held.and(answer)
            }
        }
    }

    /// Gives the lock back without waiting for the answer; the release is sent when this returns.
    pub(crate) async fn release_in_background(self) -> Result<(), Error> {
        let held = self.lease.ensure_held();
        if let Grip::Lock(mut owned) = self.grip {
            owned.release_in_background().await;
        }
        held
    }

    /// Runs `future` as part of this hold: calls below it that want the same key enter again, and
    /// [`current`](crate::current) finds this lease.
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
        chain::inside(self.lease.frame().clone(), future)
    }

    /// Whether a shutdown of its manager ended the hold.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.lease.frame().hold.check(Instant::now()) == Err(LostReason::ShutDown)
    }

    /// Whether this is a nested call's, which gives nothing back to the store.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(self.grip, Grip::Turn { .. })
    }
}

impl Deref for LockGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockGuard").field(&self.lease).finish()
    }
}

/// The lock itself, given back once: by hand, or by drop.
struct Owned {
    id: u64,
    frame: Arc<Frame>,
    given_back: bool,
}

impl Owned {
    async fn release(&mut self) -> Result<(), Error> {
        self.frame.hold.lose(LostReason::Released);
        let claims = [Releasing::new(self.claim().clone())];
        // Until the answer is here, dropping this future must still give the lock back.
        let answer = self.frame.watchdog.store().release(&claims).await.pop();
        match answer {
            Some(Ok(store::Release::Released)) => {
                self.given_back();
                Ok(())
            }
            Some(Ok(store::Release::NotHeld)) | None => {
                self.given_back();
                Err(self.frame.hold.lost(LostReason::Taken))
            }
            // Dropping `self` goes on trying.
            Some(Err(error)) => Err(error.about(self.claim().key().as_str())),
        }
    }

    async fn release_in_background(&mut self) {
        let (held, until) = (self.is_held(), self.frame.hold.store_lets_go_at());
        self.frame.hold.lose(LostReason::Released);
        self.frame.watchdog.release_in_background(self.claim().clone(), until, held).await;
        self.given_back();
    }

    /// Nothing more is owed. Only now the watchdog forgets the hold: a shutdown waits until then.
    fn given_back(&mut self) {
        self.given_back = true;
        self.frame.watchdog.forget(self.id);
    }

    fn is_held(&self) -> bool {
        self.frame.hold.check(Instant::now()).is_ok()
    }

    fn claim(&self) -> &Arc<Claim> {
        self.frame.hold.claim()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.given_back {
            let (held, until) = (self.is_held(), self.frame.hold.store_lets_go_at());
            self.frame.hold.lose(LostReason::Released);
            self.frame.watchdog.release_later(self.claim().clone(), until, held);
            self.given_back();
        }
    }
}
