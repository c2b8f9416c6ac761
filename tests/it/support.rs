//! An in-memory store that misbehaves on request, for tests that need no server.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, MemoryStore, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError, Subscriber,
};
use lockattr::{Error, FencingToken, HeldLock, Holder, HolderId, Lease, LockManager, LockOptions};
use lockattr_tests::eventually;
use tokio::time::Instant;

/// The fate of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It gets its reply.
    Answered,
    /// It takes effect, but the reply comes only after this long.
    Late(Duration),
    /// It takes effect only after this long, and gets its reply then.
    Slow(Duration),
    /// It takes effect, but the reply is an error.
    ReplyLost,
    /// It takes effect and gets its reply, but the lock is lost before the reply is read.
    Stolen,
    /// The reply is an error, and it takes effect after this long.
    Deferred(Duration),
    /// It takes no effect, and the reply is an error.
    Refused,
    /// It takes no effect and never gets a reply.
    Hangs,
    /// It panics.
    Panics,
}

/// The calls to a store; batches by their size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) acquires: usize,
    pub(crate) renewals: Vec<usize>,
    pub(crate) releases: Vec<usize>,
}

/// An in-memory store behind a script. Each call takes the next fate for its kind; the last fate
/// repeats forever.
#[derive(Debug)]
pub(crate) struct Scripted {
    store: Mutex<Arc<MemoryStore>>,
    acquires: Mutex<VecDeque<Fate>>,
    renewals: Mutex<VecDeque<Fate>>,
    releases: Mutex<VecDeque<Fate>>,
    numbers: Mutex<VecDeque<Fate>>,
    calls: Mutex<Calls>,
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
    last_claim: Mutex<Option<Arc<Claim>>>,
}

impl Scripted {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            store: Mutex::default(),
            acquires: Mutex::new([Fate::Answered].into()),
            renewals: Mutex::new([Fate::Answered].into()),
            releases: Mutex::new([Fate::Answered].into()),
            numbers: Mutex::new([Fate::Answered].into()),
            calls: Mutex::default(),
            subscribers: Mutex::default(),
            last_claim: Mutex::default(),
        })
    }

    pub(crate) fn acquires(&self, fates: &[Fate]) {
        *self.acquires.lock().unwrap() = fates.iter().copied().collect();
    }

    pub(crate) fn renewals(&self, fates: &[Fate]) {
        *self.renewals.lock().unwrap() = fates.iter().copied().collect();
    }

    pub(crate) fn releases(&self, fates: &[Fate]) {
        *self.releases.lock().unwrap() = fates.iter().copied().collect();
    }

    pub(crate) fn numbers(&self, fates: &[Fate]) {
        *self.numbers.lock().unwrap() = fates.iter().copied().collect();
    }

    pub(crate) fn calls(&self) -> Calls {
        self.calls.lock().unwrap().clone()
    }

    /// Forgets all locks, as a store that restarts empty.
    pub(crate) fn restart(&self) {
        let store = Arc::<MemoryStore>::default();
        let subscribers = self.subscribers.lock().unwrap();
        subscribers
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|subscriber| store.subscribe(&subscriber));
        *self.store.lock().unwrap() = store;
    }

    /// Takes the lock from the claim that asked last, and notifies its manager.
    pub(crate) async fn steal_from_last(&self) {
        let claim = self.last_claim.lock().unwrap().clone().expect("a caller has acquired");
        self.store().release(&[ReleaseRequest::new(claim.clone())]).await;
        let subscribers: Vec<_> =
            self.subscribers.lock().unwrap().iter().filter_map(Weak::upgrade).collect();
        let subscriber =
            subscribers.iter().find(|subscriber| subscriber.id() == claim.token().subscriber());
        subscriber.expect("its manager listens").lost(claim.token());
    }

    /// Returns the holder of this key, under the default prefix.
    pub(crate) async fn holder(&self, key: &str) -> Option<Holder> {
        let key = LockKey::new("lock:", key).unwrap();
        self.store().holder(&key).await.unwrap()
    }

    fn store(&self) -> Arc<MemoryStore> {
        self.store.lock().unwrap().clone()
    }

    pub(crate) fn manager(self: &Arc<Self>) -> LockManager {
        LockManager::builder().store(self.clone()).build().unwrap()
    }
}

fn next(fates: &Mutex<VecDeque<Fate>>) -> Fate {
    let mut fates = fates.lock().unwrap();
    if fates.len() > 1 { fates.pop_front().unwrap() } else { fates[0] }
}

fn away() -> StoreError {
    StoreError::new("away, on purpose")
}

/// Runs `call` according to `fate`. `failed` gives the result of a call without a reply.
async fn meet<T>(fate: Fate, call: impl Future<Output = T>, failed: impl FnOnce() -> T) -> T {
    match fate {
        Fate::Answered => call.await,
        Fate::Late(delay) => {
            let reply = call.await;
            tokio::time::sleep(delay).await;
            reply
        }
        Fate::Slow(delay) => {
            tokio::time::sleep(delay).await;
            call.await
        }
        Fate::ReplyLost => {
            call.await;
            failed()
        }
        // Only an acquire can have these, and handles them itself.
        Fate::Stolen | Fate::Deferred(_) => unreachable!("{fate:?} is for an acquire"),
        Fate::Refused => failed(),
        Fate::Hangs => pending().await,
        Fate::Panics => panic!("a bug in the store"),
    }
}

impl Store for Scripted {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.calls.lock().unwrap().acquires += 1;
        *self.last_claim.lock().unwrap() = Some(request.claim.clone());
        let (store, fate, request) = (self.store(), next(&self.acquires), request.clone());
        let acquire = async move { store.acquire(&request).await };
        match fate {
            Fate::Deferred(delay) => {
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    acquire.await
                });
                Err(away())
            }
            Fate::Stolen => {
                let reply = acquire.await;
                self.steal_from_last().await;
                reply
            }
            fate => meet(fate, acquire, || Err(away())).await,
        }
    }

    fn supports_companions(&self) -> bool {
        self.store().supports_companions()
    }

    async fn next_token(&self, key: &LockKey) -> Result<Option<FencingToken>, StoreError> {
        let (store, fate) = (self.store(), next(&self.numbers));
        meet(fate, store.next_token(key), || Err(away())).await
    }

    fn supports_downgrade(&self) -> bool {
        self.store().supports_downgrade()
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.store().subscribe(subscriber);
        self.subscribers.lock().unwrap().push(Arc::downgrade(subscriber));
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.calls.lock().unwrap().renewals.push(renewals.len());
        let (store, fate) = (self.store(), next(&self.renewals));
        let lost = || vec![Err(away()); renewals.len()];
        meet(fate, store.renew(renewals), lost).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        self.calls.lock().unwrap().releases.push(releases.len());
        let (store, fate) = (self.store(), next(&self.releases));
        let lost = || vec![Err(away()); releases.len()];
        meet(fate, store.release(releases), lost).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let store = self.store();
        store.holder(key).await
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        let store = self.store();
        store.held_locks(prefix).await
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        let store = self.store();
        store.force_release(key, holder).await
    }

    /// It meets the fate of a release.
    async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        let (store, fate) = (self.store(), next(&self.releases));
        meet(fate, store.mark_done(claim, lasts), || Err(away())).await
    }

    fn refuses_done(&self) -> Option<String> {
        self.store().refuses_done()
    }

    fn shows_values(&self) -> bool {
        self.store().shows_values()
    }

    fn keeps_long_values(&self) -> bool {
        self.store().keeps_long_values()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        self.store().refuses_claim(claim)
    }
}

/// A store with no more than every store has: no queue, no notifications, and no key that is done.
#[derive(Debug, Default)]
pub(crate) struct Unqueued(MemoryStore);

impl Store for Unqueued {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let alone = AcquireRequest::new(request.claim.clone(), request.ttl);
        self.0.acquire(&alone).await
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.0.renew(renewals).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        self.0.release(releases).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.0.holder(key).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Returns a store that replies with errors only.
pub(crate) fn down() -> Arc<Scripted> {
    let store = Scripted::new();
    store.acquires(&[Fate::Refused]);
    store.renewals(&[Fate::Refused]);
    store.releases(&[Fate::Refused]);
    store
}

/// Returns a manager whose store replies with errors only.
pub(crate) fn broken_manager() -> LockManager {
    down().manager()
}

/// Asserts that each URL is refused with an error that has the words beside it, and that no output
/// shows the password `s3cret`.
#[track_caller]
pub(crate) fn assert_refused(urls: &[(&str, &str)]) {
    for &(url, words) in urls {
        let builder = LockManager::builder().url(url);
        let shown = format!("{builder:?}");
        let Err(error) = builder.build() else { panic!("{url} was accepted") };
        assert!(matches!(error, Error::InvalidOptions(_)), "{url}: {error:?}");
        let told = format!("{error} {error:?}");
        assert!(told.contains(words), "{url}: {told}");
        assert!(!told.contains("s3cret") && !shown.contains("s3cret"), "{url}: {told} {shown}");
    }
}

/// Connects a manager that waits only briefly for an answer, and has it acquire and release a lock. A server that
/// is busy with other tests may not answer in time; the next attempt has a manager of its own, which has nothing
/// to undo.
pub(crate) async fn connected(url: &str) -> LockManager {
    let mut connected = None;
    let works = async || {
        let manager = LockManager::builder().url(url).build().unwrap();
        let works = works(&manager).await;
        connected = works.then_some(manager);
        works
    };
    eventually("connected", works).await;
    connected.unwrap()
}

/// Returns once the lease has been renewed: its end has moved. More time may not be left than before.
pub(crate) async fn is_renewed(lease: &Lease) {
    let end = || Instant::now() + lease.remaining();
    let before = end();
    eventually("it is renewed", async || end() > before + Duration::from_secs(1)).await;
}

/// Whether the manager can acquire and release a lock now.
pub(crate) async fn works(manager: &LockManager) -> bool {
    match manager.try_acquire("first", LockOptions::new()).await {
        Ok(Some(guard)) => guard.release().await.is_ok(),
        Ok(None) | Err(_) => false,
    }
}

/// Counts the panics from now on, on threads whose names begin so. Not those of the ZooKeeper client, which the store
/// catches: one that it misses ends the call, or the task that a later call needs.
pub(crate) fn panics_on(name: &'static str) -> Arc<AtomicUsize> {
    let panics = Arc::<AtomicUsize>::default();
    let (counted, before) = (panics.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        let is_caught = info.location().is_some_and(|at| at.file().contains("/zookeeper-client-"));
        let thread = std::thread::current();
        if !is_caught && thread.name().is_some_and(|thread| thread.starts_with(name)) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        before(info);
    }));
    panics
}
