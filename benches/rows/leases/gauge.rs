//! The sources of the measurements: the system for this process, the server for its commands, and a
//! counting store for its batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockattr::Holder;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, RedisStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError, Subscriber,
};
use lockattr_tests::Cli;
use tikv_jemalloc_ctl::{epoch, stats};
use tokio::time::Instant;

use crate::own_cpu::own_cpu;

/// The bytes that this process has allocated and not freed.
///
/// From the allocator's own statistics. The resident size includes the unused parts of pages, and
/// differs from run to run.
pub(crate) fn allocated() -> usize {
    epoch::advance().expect("statistics are compiled in");
    stats::allocated::read().expect("statistics are compiled in")
}

/// The resident bytes of the allocator, with partly used pages.
pub(crate) fn resident() -> usize {
    epoch::advance().expect("statistics are compiled in");
    stats::resident::read().expect("statistics are compiled in")
}

/// How many scripts the server was asked to run.
pub(crate) async fn scripts(cli: &Cli) -> u64 {
    cli.commandstats().await.get("evalsha").copied().unwrap_or_default()
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) time: Duration,
    pub(crate) cpu: Duration,
}

impl Cost {
    pub(crate) async fn of(work: impl Future<Output = ()>) -> Self {
        let (started, before) = (Instant::now(), own_cpu());
        work.await;
        Self { time: started.elapsed(), cpu: own_cpu() - before }
    }

    /// In percent of one core.
    pub(crate) fn percent(self) -> f64 {
        100.0 * self.cpu.as_secs_f64() / self.time.as_secs_f64()
    }
}

/// A store that counts its renewals.
#[derive(Debug)]
pub(crate) struct Counted {
    store: RedisStore,
    calls: AtomicU64,
    renewals: AtomicU64,
}

impl Counted {
    pub(crate) fn new(store: RedisStore) -> Arc<Self> {
        Arc::new(Self { store, calls: AtomicU64::new(0), renewals: AtomicU64::new(0) })
    }

    /// The number of requests, and of renewals in them.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.calls.load(Ordering::Relaxed), self.renewals.load(Ordering::Relaxed))
    }
}

impl Store for Counted {
    async fn acquire(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.store.acquire(asked).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.store.subscribe(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.renewals.fetch_add(renewals.len() as u64, Ordering::Relaxed);
        self.store.renew(renewals).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        self.store.release(releases).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.store.holder(key).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.store.ping().await
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        self.store.refuses_claim(claim)
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        self.store.refuses(key)
    }
}
