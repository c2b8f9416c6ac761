//! Servers with one bug each, which the simulation has to find.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, MemoryStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Sharing, Store, StoreError, Subscriber,
};
use lockattr::{FencingToken, Holder, HolderId};
use tokio::time::Instant;

use crate::machine::{date, micros_ahead};
use crate::turn::LONGEST_TTL;

/// The bug of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedBug {
    /// A release frees the lock, whichever process sent it.
    ReleasesForAnyClient,
    /// A lease does not expire.
    ForgetsToExpire,
    /// Every tenth refusal is a grant.
    GrantsTwice,
    /// It takes fencing tokens from its clock alone, which is set back now and then.
    CountsBackwards,
    /// It takes fencing tokens from its calendar alone, which may jump back.
    CountsByCalendar,
    /// A lease ends at a date of its calendar, which may jump ahead.
    ExpiresByCalendar,
    /// A lease ends after half of its time.
    ExpiresEarly,
    /// An entry of its wait queue lasts although its process no longer asks.
    KeepsDeadWaiters,
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
    /// For `ExpiresByCalendar`: how far ahead the calendar was when a lock was last asked for.
    ahead: HashMap<String, i64>,
    /// For `KeepsDeadWaiters`: each waiter, with the time of its last request.
    waiting: Vec<(AcquireRequest, Instant)>,
}

/// After how long without a request of its own the server repeats a waiter's request.
const SILENT: Duration = Duration::from_millis(500);

/// How late a lock is freed.
const LATE: Duration = Duration::from_secs(8);

/// The beginning of a store's counter, as the time since 1970.
const EPOCH: Duration = Duration::from_secs(1_704_067_200);

/// Longer than any simulation.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);

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
    async fn keep_dead_waiters(&self) {
        let now = Instant::now();
        let silent = |entry: &&(AcquireRequest, Instant)| entry.1 + SILENT < now;
        let silent: Vec<_> = self.memory().waiting.iter().filter(silent).cloned().collect();
        for (request, _) in silent {
            if let Ok(AcquireOutcome::Acquired { .. }) = self.inner.acquire(&request).await {
                self.forget_waiter(&request.claim);
            }
        }
    }

    /// Ends the lease of this lock if the calendar has jumped past any date at which it could end.
    async fn expire_by_calendar(&self, key: &LockKey) {
        let now = micros_ahead();
        let before = self.memory().ahead.insert(key.name().to_owned(), now).unwrap_or(now);
        if i128::from(now - before) > LONGEST_TTL.as_micros().cast_signed() {
            while let Ok(Some(holder)) = self.inner.holder(key).await {
                drop(self.inner.force_release(key, &holder.id).await);
            }
        }
    }

    fn forget_waiter(&self, claim: &Claim) {
        self.memory().waiting.retain(|(request, _)| request.claim.token() != claim.token());
    }

    fn changed_ttl(&self, ttl: Duration) -> Duration {
        match self.injected_bug {
            InjectedBug::ForgetsToExpire => FOREVER,
            InjectedBug::ExpiresEarly => ttl / 2,
            _ => ttl,
        }
    }

    fn inject(&self, request: &AcquireRequest, reply: AcquireOutcome) -> AcquireOutcome {
        let mut memory = self.memory();
        match reply {
            AcquireOutcome::Acquired { fencing, contended } => {
                memory.grants += 1;
                let name = request.claim.key().name().to_owned();
                memory.holders.insert(name, request.claim.clone());
                let backwards = self.injected_bug == InjectedBug::CountsBackwards
                    && memory.grants.is_multiple_of(8);
                let token = if backwards { fencing.get() / 2 } else { fencing.get() };
                let counter = match self.injected_bug {
                    InjectedBug::CountsByCalendar => micros_since_2024(),
                    _ => token >> 10,
                };
                AcquireOutcome::Acquired { fencing: FencingToken::from_counter(counter), contended }
            }
            held @ AcquireOutcome::Held { .. } => {
                memory.refusals += 1;
                let alone = request.claim.sharing() == Sharing::Exclusive;
                if self.injected_bug != InjectedBug::GrantsTwice
                    || !alone
                    || !memory.refusals.is_multiple_of(10)
                {
                    return held;
                }
                let fencing = request.hint.unwrap_or(2_000_000_000_000_000);
                AcquireOutcome::Acquired {
                    fencing: FencingToken::from_counter(fencing + memory.refusals),
                    contended: true,
                }
            }
        }
    }
}

/// The counter that the calendar alone gives.
fn micros_since_2024() -> u64 {
    u64::try_from(date().saturating_sub(EPOCH).as_micros()).expect("a date of this century")
}

impl Store for WrongStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let mut changed = request.clone();
        changed.ttl = self.changed_ttl(request.ttl);
        if self.injected_bug == InjectedBug::ExpiresByCalendar {
            self.expire_by_calendar(request.claim.key()).await;
        }
        if self.injected_bug == InjectedBug::KeepsDeadWaiters {
            self.keep_dead_waiters().await;
            self.forget_waiter(&request.claim);
            let reply = self.inner.acquire(&changed).await?;
            if let AcquireOutcome::Held { queued: Some(_), .. } = reply {
                self.memory().waiting.push((changed, Instant::now()));
            }
            return Ok(reply);
        }
        let reply = self.inner.acquire(&changed).await?;
        Ok(self.inject(request, reply))
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.inner.subscribe(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let mut changed = renewals.to_vec();
        changed.iter_mut().for_each(|changed| changed.ttl = self.changed_ttl(changed.ttl));
        self.inner.renew(&changed).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        releases.iter().for_each(|release| self.forget_waiter(&release.claim));
        let mut changed = releases.to_vec();
        if self.injected_bug == InjectedBug::FreesLate {
            changed.iter_mut().for_each(|changed| *changed = changed.clone().after(LATE));
        }
        let mut replies = self.inner.release(&changed).await;
        if self.injected_bug == InjectedBug::ReleasesForAnyClient {
            for (release, reply) in releases.iter().zip(&mut replies) {
                let name = release.claim.key().name();
                let holder = self.memory().holders.get(name).cloned();
                if let Some(holder) = holder {
                    *reply = Ok(ReleaseOutcome::Released);
                    drop(self.inner.release(&[ReleaseRequest::new(holder)]).await);
                }
            }
        }
        replies
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.inner.holder(key).await
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        self.inner.force_release(key, holder).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner.ping().await
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        self.inner.refuses_claim(claim)
    }
}

impl fmt::Debug for WrongStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WrongStore").field(&self.injected_bug).finish()
    }
}
