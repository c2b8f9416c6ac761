//! The store inside the process: for examples, unit tests and single-process programs.

mod locks;

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::store::{
    Acquire, Acquiring, Claim, Inbox, Inboxes, LockKey, News, OwnerToken, Release, Releasing,
    Renew, Renewal, Store, StoreError, StoreFuture,
};
use crate::{FencingToken, HeldLock, Holder};
use locks::Locks;

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
    inboxes: Inboxes,
}

/// What is to be told when the locks are no longer locked.
enum Message {
    News(Arc<Inbox>, OwnerToken, News),
    Wanted(Arc<Inbox>, Box<str>),
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, change: impl FnOnce(&mut Locks, &mut Post<'_>) -> T) -> T {
        let mut post = Post { store: self, now: Instant::now(), messages: Vec::new() };
        let changed = {
            // A panic cannot leave the map half changed, so a poisoned lock is still good.
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut locks, &mut post)
        };
        for message in post.messages {
            match message {
                Message::News(inbox, token, news) => inbox.tell(token, news),
                Message::Wanted(inbox, name) => inbox.wanted(&name),
            }
        }
        changed
    }
}

/// Who hears of a change, and when it happens.
struct Post<'a> {
    store: &'a MemoryStore,
    now: Instant,
    messages: Vec<Message>,
}

impl Post<'_> {
    /// Tells the claim's inbox; `false` if its manager is gone.
    fn tell(&mut self, claim: &Claim, news: News) -> bool {
        let inbox = self.inbox(claim);
        let there = inbox.is_some();
        self.messages
            .extend(inbox.map(|inbox| Message::News(inbox, claim.stands_as().token(), news)));
        there
    }

    /// Tells the holder that others wait.
    fn tell_wanted(&mut self, holder: &Claim, name: &str) {
        let inbox = self.inbox(holder);
        self.messages.extend(inbox.map(|inbox| Message::Wanted(inbox, name.into())));
    }

    fn inbox(&self, claim: &Claim) -> Option<Arc<Inbox>> {
        self.store.inboxes.get(claim.token().inbox())
    }
}

impl Store for MemoryStore {
    fn acquire<'a>(&'a self, asked: &'a Acquiring) -> StoreFuture<'a, Result<Acquire, StoreError>> {
        Box::pin(async move { Ok(self.with(|locks, post| locks.acquire(asked, post))) })
    }

    fn listen(&self, inbox: &Arc<Inbox>) {
        self.inboxes.add(inbox);
    }

    fn renew<'a>(
        &'a self,
        renewals: &'a [Renewal],
    ) -> StoreFuture<'a, Vec<Result<Renew, StoreError>>> {
        let renew = |locks: &mut Locks, post: &mut Post<'_>| {
            renewals.iter().map(|renewal| Ok(locks.renew(renewal, post))).collect()
        };
        Box::pin(async move { self.with(renew) })
    }

    fn release<'a>(
        &'a self,
        releases: &'a [Releasing],
    ) -> StoreFuture<'a, Vec<Result<Release, StoreError>>> {
        let release = |locks: &mut Locks, post: &mut Post<'_>| {
            releases.iter().map(|release| Ok(locks.release(release, post))).collect()
        };
        Box::pin(async move { self.with(release) })
    }

    fn holder<'a>(
        &'a self,
        key: &'a LockKey,
    ) -> StoreFuture<'a, Result<Option<Holder>, StoreError>> {
        Box::pin(async move { Ok(self.with(|locks, post| locks.holder(key, post.now))) })
    }

    fn survey<'a>(&'a self, prefix: &'a str) -> StoreFuture<'a, Result<Vec<HeldLock>, StoreError>> {
        Box::pin(async move { Ok(self.with(|locks, post| locks.survey(prefix, post.now))) })
    }

    fn evict<'a>(&'a self, key: &'a LockKey) -> StoreFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.with(|locks, post| locks.evict(key, post))) })
    }

    fn knows_companions(&self) -> bool {
        true
    }

    fn can_share_held_locks(&self) -> bool {
        true
    }

    fn next_token<'a>(
        &'a self,
        _key: &'a LockKey,
    ) -> StoreFuture<'a, Result<Option<FencingToken>, StoreError>> {
        Box::pin(async move { Ok(Some(self.with(|locks, _| locks.next_token(None)))) })
    }

    fn ping(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }
}
