//! Servers with one bug each, which the simulation has to find.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, MemoryStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Sharing, Store, StoreError, Subscriber,
};
use lockattr::{FencingToken, Holder};
use tokio::time::Instant;

/// The bug of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedBug {
    /// A release frees the lock, whichever process sent it.
    ReleasesForAnybody,
    /// A lease does not expire.
    ForgetsToExpire,
    /// Every tenth refusal is a grant.
    GrantsTwice,
    /// It takes fencing tokens from its clock alone, which is set back now and then.
    CountsBackwards,
    /// A lease ends after half of its time.
    ExpiresEarly,
    /// An entry of its wait queue lasts although its process no longer asks.
    KeepsTheDead,
    /// A released lock stays taken for a while, as if its holder had requested that.
    FreesLate,
}

/// A server with a bug.
pub(crate) struct WrongStore {
    inner: MemoryStore,
    injected_bug: InjectedBug,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// The last claim for each lock that was granted at once.
    holders: HashMap<String, Arc<Claim>>,
    refusals: u64,
    grants: u64,
    /// For `KeepsTheDead`: each waiter, with the time of its last request.
    waiting: Vec<(AcquireRequest, Instant)>,
}

/// After how long without a request of its own the server repeats a waiter's request.
const SILENT: Duration = Duration::from_millis(500);

/// How late a lock is freed.
const LATE: Duration = Duration::from_secs(8);

/// Longer than any simulation.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

impl WrongStore {
    /// A correct store, except for this bug.
    pub(crate) fn new(injected_bug: InjectedBug) -> Self {
        Self { inner: MemoryStore::new(), injected_bug, memory: Mutex::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Repeats the requests of waiters that have long been silent, so that their entries last. Such
    /// a waiter never learns of its grant.
    async fn keep_the_dead(&self) {
        let now = Instant::now();
        let silent = |entry: &&(AcquireRequest, Instant)| entry.1 + SILENT < now;
        let silent: Vec<_> = self.memory().waiting.iter().filter(silent).cloned().collect();
        for (asked, _) in silent {
            if let Ok(AcquireOutcome::Acquired { .. }) = self.inner.acquire(&asked).await {
                self.waits_no_more(&asked.claim);
            }
        }
    }

    fn waits_no_more(&self, claim: &Claim) {
        self.memory().waiting.retain(|(asked, _)| asked.claim.token() != claim.token());
    }

    fn lasts(&self, ttl: Duration) -> Duration {
        match self.injected_bug {
            InjectedBug::ForgetsToExpire => FOR_EVER,
            InjectedBug::ExpiresEarly => ttl / 2,
            _ => ttl,
        }
    }

    fn told(&self, asked: &AcquireRequest, answer: AcquireOutcome) -> AcquireOutcome {
        let mut memory = self.memory();
        match answer {
            AcquireOutcome::Acquired { fencing, contended } => {
                memory.grants += 1;
                let name = asked.claim.key().name().to_owned();
                memory.holders.insert(name, asked.claim.clone());
                let backwards = self.injected_bug == InjectedBug::CountsBackwards
                    && memory.grants.is_multiple_of(8);
                let number = if backwards { fencing.get() / 2 } else { fencing.get() };
                AcquireOutcome::Acquired {
                    fencing: FencingToken::from_counter(number >> 10),
                    contended,
                }
            }
            held @ AcquireOutcome::Held { .. } => {
                memory.refusals += 1;
                let alone = asked.claim.sharing() == Sharing::Exclusive;
                if self.injected_bug != InjectedBug::GrantsTwice
                    || !alone
                    || !memory.refusals.is_multiple_of(10)
                {
                    return held;
                }
                let fencing = asked.hint.unwrap_or(2_000_000_000_000_000);
                AcquireOutcome::Acquired {
                    fencing: FencingToken::from_counter(fencing + memory.refusals),
                    contended: true,
                }
            }
        }
    }
}

impl Store for WrongStore {
    async fn acquire(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let mut wish = asked.clone();
        wish.ttl = self.lasts(asked.ttl);
        if self.injected_bug == InjectedBug::KeepsTheDead {
            self.keep_the_dead().await;
            self.waits_no_more(&asked.claim);
            let answer = self.inner.acquire(&wish).await?;
            if let AcquireOutcome::Held { queued: Some(_), .. } = answer {
                self.memory().waiting.push((wish, Instant::now()));
            }
            return Ok(answer);
        }
        let answer = self.inner.acquire(&wish).await?;
        Ok(self.told(asked, answer))
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.inner.subscribe(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let mut wishes = renewals.to_vec();
        wishes.iter_mut().for_each(|wish| wish.ttl = self.lasts(wish.ttl));
        self.inner.renew(&wishes).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        releases.iter().for_each(|release| self.waits_no_more(&release.claim));
        let mut wishes = releases.to_vec();
        if self.injected_bug == InjectedBug::FreesLate {
            wishes.iter_mut().for_each(|wish| *wish = wish.clone().after(LATE));
        }
        let mut answers = self.inner.release(&wishes).await;
        if self.injected_bug == InjectedBug::ReleasesForAnybody {
            for (release, answer) in releases.iter().zip(&mut answers) {
                let name = release.claim.key().name();
                let holder = self.memory().holders.get(name).cloned();
                if let Some(holder) = holder {
                    *answer = Ok(ReleaseOutcome::Released);
                    drop(self.inner.release(&[ReleaseRequest::new(holder)]).await);
                }
            }
        }
        answers
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.inner.holder(key).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner.ping().await
    }
}

impl fmt::Debug for WrongStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WrongStore").field(&self.injected_bug).finish()
    }
}
