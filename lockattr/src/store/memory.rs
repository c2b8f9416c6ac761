//! The store inside the process: for examples, unit tests and single-process programs.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{
    Acquire, Claim, LockKey, Release, Releasing, Renew, Renewal, Store, StoreError, StoreFuture,
};
use crate::fencing::next_counter;
use crate::{FencingToken, Holder};

/// Locks in the memory of this process, on tokio's clock, so that a paused clock drives them.
///
/// Each `MemoryStore` is a world of its own, as is each manager connected to `memory://`. Managers
/// that shall contend with each other share one:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use std::sync::Arc;
/// use lockattr::store::MemoryStore;
/// use lockattr::{LockManager, LockOptions};
///
/// let store = Arc::new(MemoryStore::new());
/// let here = LockManager::builder().store(store.clone()).build()?;
/// let there = LockManager::builder().store(store).build()?;
///
/// let _held = here.acquire("stock", LockOptions::new()).await?;
/// assert!(there.try_acquire("stock", LockOptions::new()).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    locks: Mutex<Locks>,
}

#[derive(Debug, Default)]
struct Locks {
    by_name: HashMap<Box<str>, Lock>,
    counter: u64,
    /// Entries allowed before those that ended by themselves are swept out.
    room: usize,
}

#[derive(Debug)]
struct Lock {
    claim: Arc<Claim>,
    ends: Instant,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, change: impl FnOnce(&mut Locks, Instant) -> T) -> T {
        // A panic cannot leave the map half changed, so a poisoned lock is still good.
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut locks, Instant::now())
    }
}

impl Locks {
    fn live(&self, key: &LockKey, now: Instant) -> Option<&Lock> {
        self.by_name.get(key.name()).filter(|lock| lock.ends > now)
    }

    fn acquire(&mut self, claim: &Arc<Claim>, ttl: Duration, now: Instant) -> Acquire {
        if let Some(lock) = self.live(claim.key(), now)
            && lock.claim.token() != claim.token()
        {
            return Acquire::Held { holder: Some(Box::new(lock.holder(now))) };
        }
        self.sweep(now);
        let lock = Lock { claim: claim.clone(), ends: now + ttl };
        self.by_name.insert(claim.key().name().into(), lock);
        self.counter = next_counter(self.counter);
        Acquire::Acquired { fencing: FencingToken::from_counter(self.counter) }
    }

    fn renew(&mut self, renewal: &Renewal, now: Instant) -> Renew {
        let lock = self.by_name.get_mut(renewal.claim.key().name());
        match lock.filter(|lock| lock.is(&renewal.claim, now)) {
            Some(lock) => {
                lock.ends = lock.ends.max(now + renewal.ttl);
                Renew::Renewed
            }
            None => Renew::NotHeld,
        }
    }

    fn release(&mut self, claim: &Claim, now: Instant) -> Release {
        let name = claim.key().name();
        if self.by_name.get(name).is_some_and(|lock| lock.is(claim, now)) {
            self.by_name.remove(name);
            Release::Released
        } else {
            Release::NotHeld
        }
    }

    /// Leases that nobody gave back must not pile up: swept whenever their number has doubled.
    fn sweep(&mut self, now: Instant) {
        if self.by_name.len() >= self.room.max(64) {
            self.by_name.retain(|_, lock| lock.ends > now);
            self.room = self.by_name.len() * 2;
        }
    }
}

impl Lock {
    fn is(&self, claim: &Claim, now: Instant) -> bool {
        self.claim.token() == claim.token() && self.ends > now
    }

    fn holder(&self, now: Instant) -> Holder {
        Holder::from_value(self.claim.value(), Some(self.ends - now))
    }
}

impl Store for MemoryStore {
    fn acquire<'a>(
        &'a self,
        claim: &'a Arc<Claim>,
        ttl: Duration,
    ) -> StoreFuture<'a, Result<Acquire, StoreError>> {
        Box::pin(async move { Ok(self.with(|locks, now| locks.acquire(claim, ttl, now))) })
    }

    fn renew<'a>(
        &'a self,
        renewals: &'a [Renewal],
    ) -> StoreFuture<'a, Vec<Result<Renew, StoreError>>> {
        let renew = |locks: &mut Locks, now| {
            renewals.iter().map(|renewal| Ok(locks.renew(renewal, now))).collect()
        };
        Box::pin(async move { self.with(renew) })
    }

    fn release<'a>(
        &'a self,
        releases: &'a [Releasing],
    ) -> StoreFuture<'a, Vec<Result<Release, StoreError>>> {
        let release = |locks: &mut Locks, now| {
            releases.iter().map(|release| Ok(locks.release(&release.claim, now))).collect()
        };
        Box::pin(async move { self.with(release) })
    }

    fn holder<'a>(
        &'a self,
        key: &'a LockKey,
    ) -> StoreFuture<'a, Result<Option<Holder>, StoreError>> {
        Box::pin(async move {
            Ok(self.with(|locks, now| locks.live(key, now).map(|lock| lock.holder(now))))
        })
    }

    fn ping(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }
}
