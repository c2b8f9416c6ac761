//! What a test does to locks without their holders' knowledge.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::TestLocks;
use super::store::ScriptedStore;
use crate::LockOptions;
use crate::platform::entropy::random_bits;
use crate::store::{Claim, LockKey, OwnerToken, ReleaseRequest, Sharing};

/// Longer than a test lasts: the simulated holder renews its lease, as others do.
const FOR_GOOD: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The label of a lock that the test holds as another client.
const LABEL: &str = "service=another host=elsewhere pid=4711";

impl TestLocks {
    /// Holds a key as another client, until it is released or dropped.
    ///
    /// Callers that it keeps out see the service `another` on host `elsewhere`. The key is the one
    /// that the code under test locks, `product:42`, without the manager's prefix.
    ///
    /// # Panics
    ///
    /// If the key is already held, or is not a valid key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use lockattr::testing::TestLocks;
    /// use lockattr::{Error, LockOptions};
    ///
    /// let locks = TestLocks::new();
    /// let other = locks.hold("product:42");
    ///
    /// let refused = locks.manager().acquire("product:42", LockOptions::new()).await;
    /// let Err(Error::Contended { holder: Some(holder), .. }) = refused else { panic!("{refused:?}") };
    /// assert_eq!(holder.service.as_deref(), Some("another"));
    ///
    /// other.release();
    /// assert!(locks.manager().acquire("product:42", LockOptions::new()).await.is_ok());
    /// # }
    /// ```
    #[track_caller]
    pub fn hold(&self, key: impl AsRef<str>) -> Other {
        self.hold_with(key, &LockOptions::new())
    }

    /// Holds a key as another client, in the `mode` or with the `permits` of these options; all
    /// other options are ignored.
    ///
    /// # Panics
    ///
    /// As [`hold`](Self::hold), except for a key held in a mode that can be shared; and if the
    /// options are invalid.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::testing::TestLocks;
    /// use lockattr::{LockOptions, Mode};
    ///
    /// let locks = TestLocks::new();
    /// let reads = LockOptions::new().mode(Mode::Shared);
    /// let _reader = locks.hold_with("report", &reads);
    /// assert!(locks.manager().try_acquire("report", reads).await?.is_some());
    /// assert!(locks.manager().try_acquire("report", LockOptions::new()).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn hold_with(&self, key: impl AsRef<str>, options: &LockOptions) -> Other {
        let key = self.key(key);
        let options = options.resolve(self.manager.settings());
        let sharing = options.unwrap_or_else(|error| panic!("{error}")).sharing;
        let other = self.other(key, sharing);
        let acquired = self.shared.store.directly(|locks| locks.take(&other.claim, FOR_GOOD));
        match acquired {
            Ok(()) => other,
            Err(Some(holder)) => panic!(
                "`{}` cannot be held as another client: it is held by {holder}; `steal` it, or \
                 release it first",
                other.key()
            ),
            Err(None) => panic!(
                "`{}` cannot be held as another client: callers wait in the queue for it",
                other.key()
            ),
        }
    }

    /// Takes the lock from all its holders, and holds it as another client: ahead of all waiters,
    /// as after an operator's intervention or an eviction.
    ///
    /// The holder is not notified: as with a server, it learns of the loss by its next renewal, a
    /// third of the TTL after the last, and gets [`LostReason::Taken`](crate::LostReason::Taken).
    /// Until then two callers believe that they hold the lock, and only the fencing tokens differ.
    /// With [`noticed`](Other::noticed) the holder is notified at once.
    ///
    /// # Panics
    ///
    /// If no caller has the lock; use [`hold`](Self::hold) then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::LockOptions;
    /// use lockattr::testing::TestLocks;
    ///
    /// let locks = TestLocks::new();
    /// let options = LockOptions::new().ttl(Duration::from_secs(9));
    /// let guard = locks.manager().acquire("stock", options).await?;
    ///
    /// let thief = locks.steal("stock");
    /// assert!(guard.ensure_held().is_ok());
    /// tokio::time::sleep(Duration::from_secs(4)).await;
    /// assert!(guard.ensure_held().is_err());
    /// # drop(thief);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn steal(&self, key: impl AsRef<str>) -> Other {
        let mut other = self.other(self.key(key), Sharing::Exclusive);
        let stolen_from = self.shared.store.directly(|locks| locks.steal(&other.claim, FOR_GOOD));
        assert!(
            !stolen_from.is_empty(),
            "`{}` cannot be stolen: no caller holds it; `hold` it, or wait with `until_held`",
            other.key()
        );
        other.stolen_from = stolen_from.iter().map(|claim| claim.token()).collect();
        other
    }

    /// Ends the leases on a key now, as if their TTLs had passed without a renewal.
    ///
    /// The next waiter gets the lock, and the holder gets
    /// [`LostReason::Expired`](crate::LostReason::Expired) at once, as by its own clock.
    ///
    /// # Panics
    ///
    /// If no caller has the lock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::testing::TestLocks;
    /// use lockattr::{Error, LockOptions, LostReason};
    ///
    /// let locks = TestLocks::new();
    /// let guard = locks.manager().acquire("stock", LockOptions::new()).await?;
    /// locks.expire("stock");
    /// let lost = guard.ensure_held();
    /// assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Expired, .. })));
    /// locks.assert_free("stock");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn expire(&self, key: impl AsRef<str>) {
        let key = self.key(key);
        let ended = self.shared.store.directly(|locks| locks.end(&key));
        assert!(
            !ended.is_empty(),
            "`{key}` cannot expire: no caller holds it; wait with \
             `until_held`"
        );
        for watchdog in self.shared.watchdogs() {
            ended.iter().for_each(|claim| watchdog.expired(claim.token()));
        }
    }

    fn other(&self, key: LockKey, sharing: Sharing) -> Other {
        let claim = Claim::with(random_bits(), Arc::new([key]), sharing, LABEL);
        Other {
            store: self.shared.store.clone(),
            claim: Arc::new(claim),
            stolen_from: Vec::new(),
            released: false,
        }
    }
}

/// A lock that the test holds as another client; released when dropped.
#[must_use = "it is released as soon as it is dropped"]
pub struct Other {
    store: Arc<ScriptedStore>,
    claim: Arc<Claim>,
    /// The holders that it was stolen from.
    stolen_from: Vec<OwnerToken>,
    /// Whether it was released, now or for later.
    released: bool,
}

impl Other {
    /// The key.
    pub fn key(&self) -> &str {
        self.claim.key().as_str()
    }

    /// Whether it is still held: not if it was stolen or has expired since.
    pub fn is_held(&self) -> bool {
        self.store.locks.is_held_by(&self.claim)
    }

    /// Releases the lock: the next waiter gets it.
    pub fn release(self) {
        // The drop does.
    }

    /// Releases the lock after `time` on tokio's clock. The caller need not keep anything for that.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::LockOptions;
    /// use lockattr::testing::TestLocks;
    ///
    /// let locks = TestLocks::new();
    /// locks.hold("stock").release_after(Duration::from_secs(3));
    /// let began = tokio::time::Instant::now();
    /// let _guard = locks.manager().acquire("stock", LockOptions::new()).await?;
    /// assert_eq!(began.elapsed().as_secs(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn release_after(mut self, time: Duration) {
        self.release_in(time);
    }

    /// Marks the key as done for `time`, as another client after its work: callers get
    /// [`Error::Done`](crate::Error::Done).
    ///
    /// # Panics
    ///
    /// If it no longer holds the key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use std::time::Duration;
    /// use lockattr::LockOptions;
    /// use lockattr::testing::TestLocks;
    ///
    /// let locks = TestLocks::new();
    /// locks.hold("invoices").done_for(Duration::from_secs(22 * 3600));
    /// let refused = locks.manager().acquire("invoices", LockOptions::new()).await;
    /// assert!(refused.unwrap_err().is_done());
    /// # }
    /// ```
    #[track_caller]
    pub fn done_for(mut self, time: Duration) {
        self.released = true;
        let marked = self.store.directly(|locks| locks.finish(&self.claim, time));
        assert!(marked, "`{}` cannot be done: it was taken meanwhile", self.key());
    }

    /// Notifies the holders from whom it was [stolen](TestLocks::steal) now, as some stores do. No
    /// effect if it was not stolen.
    pub fn noticed(mut self) -> Self {
        for token in std::mem::take(&mut self.stolen_from) {
            self.store.notify_lost(token);
        }
        self
    }

    fn release_in(&mut self, after: Duration) {
        if !std::mem::replace(&mut self.released, true) {
            let release = ReleaseRequest::new(self.claim.clone()).after(after);
            self.store.directly(|locks| locks.give_back(&release));
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.release_in(Duration::ZERO);
    }
}

impl fmt::Debug for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Other").field("key", &self.key()).finish_non_exhaustive()
    }
}
