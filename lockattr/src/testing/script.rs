//! What a test does to the locks behind the backs of those who hold them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::TestLocks;
use super::store::ScriptedStore;
use crate::LockOptions;
use crate::platform::entropy::random_bits;
use crate::store::{Claim, LockKey, OwnerToken, ReleaseRequest, Sharing};

/// Longer than a test lets pass: the holder that is played here renews its lease as others do.
const FOR_GOOD: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Who holds a lock that the test holds as somebody else.
const LABEL: &str = "service=another host=elsewhere pid=4711";

impl TestLocks {
    /// Holds a key as somebody else: as service `another` on host `elsewhere`, to those who are
    /// kept out by it. Until it is released or dropped.
    ///
    /// The key is the whole one as the code under test locks it, `product:42`, without the manager's
    /// prefix.
    ///
    /// # Panics
    ///
    /// If the key is held already, or is no key.
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

    /// Holds a key as somebody else, in the `mode` or with the `permits` of these options; the rest
    /// of them does not count.
    ///
    /// # Panics
    ///
    /// As [`hold`](Self::hold), where the key is not held in a way that lets others in; and if
    /// the options make no sense.
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
        let taken = self.shared.store.directly(|locks| locks.take(&other.claim, FOR_GOOD));
        match taken {
            Ok(()) => other,
            Err(Some(holder)) => panic!(
                "`{}` cannot be held as somebody else: it is held by {holder}; `steal` it, or \
                 release it first",
                other.key()
            ),
            Err(None) => panic!(
                "`{}` cannot be held as somebody else: others stand in line for it",
                other.key()
            ),
        }
    }

    /// Takes the lock away from all who have it, and holds it as somebody else: before all who
    /// wait in the queue, as after an operator's hand or an eviction.
    ///
    /// The holder is not notified: as with a server, it learns of the loss by its next renewal, which is a third of
    /// the TTL after the last, and is notified [`LostReason::Taken`](crate::LostReason::Taken). Until
    /// then both believe that they have it, and only a fencing token tells them apart. With
    /// [`noticed`](Other::noticed) it is notified at once.
    ///
    /// # Panics
    ///
    /// If no caller has the lock: [`hold`](Self::hold) it then.
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
            "`{}` cannot be stolen: nobody has it; `hold` it, or wait with `until_held`",
            other.key()
        );
        other.stolen_from = stolen_from.iter().map(|claim| claim.token()).collect();
        other
    }

    /// Ends the leases on a key now, as if their TTLs had passed without a renewal: the next in
    /// the queue has the lock, and its holder is notified
    /// [`LostReason::Expired`](crate::LostReason::Expired) at once, because its own clock shows it.
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
        assert!(!ended.is_empty(), "`{key}` cannot expire: nobody has it; wait with `until_held`");
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
            given_back: false,
        }
    }
}

/// A lock that the test holds as somebody else; dropped, it is released.
#[must_use = "it is released as soon as it is dropped"]
pub struct Other {
    store: Arc<ScriptedStore>,
    claim: Arc<Claim>,
    /// Whom it was stolen from.
    stolen_from: Vec<OwnerToken>,
    /// Whether it was given back, be it for later.
    given_back: bool,
}

impl Other {
    /// What is held.
    pub fn key(&self) -> &str {
        self.claim.key().as_str()
    }

    /// Whether it is held still: not if it was stolen or has expired since.
    pub fn is_held(&self) -> bool {
        self.store.locks.is_held_by(&self.claim)
    }

    /// Gives the lock back: the next in the queue has it.
    pub fn release(self) {
        // The drop does.
    }

    /// Gives the lock back after so long, on tokio's clock. Nothing has to be kept for that.
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
        self.let_go(time);
    }

    /// Tells those from whom it was [stolen](TestLocks::steal), now: as some stores do by
    /// themselves. Nothing, if it was not stolen.
    pub fn noticed(mut self) -> Self {
        for token in std::mem::take(&mut self.stolen_from) {
            self.store.notify_lost(token);
        }
        self
    }

    fn let_go(&mut self, after: Duration) {
        if !std::mem::replace(&mut self.given_back, true) {
            let release = ReleaseRequest::new(self.claim.clone()).after(after);
            self.store.directly(|locks| locks.give_back(&release));
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.let_go(Duration::ZERO);
    }
}

impl fmt::Debug for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Other").field("key", &self.key()).finish_non_exhaustive()
    }
}
