//! The store of a test: locks in memory, at the other end of a scripted network.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::network::{Network, Weather};
use crate::store::{
    Acquire, Acquiring, Inbox, LockKey, MemoryStore, OwnerToken, Release, Releasing, Renew,
    Renewal, Store, StoreError, StoreFuture,
};
use crate::{FencingToken, HeldLock, Holder};

/// The locks, and the network before them.
#[derive(Debug, Default)]
pub(super) struct ScriptedStore {
    pub(super) locks: MemoryStore,
    network: Arc<Network>,
    inboxes: Mutex<Vec<Ear>>,
    changed: Notify,
}

/// What a manager hears of its claims: as much as the network lets through.
#[derive(Debug)]
struct Ear {
    inbox: Weak<Inbox>,
    /// What the locks tell; they forget it when it is dropped.
    _outside: Arc<Inbox>,
}

impl ScriptedStore {
    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// Requests are answered again, and managers hear again: they ask for what they missed, as
    /// after a connection is made anew.
    pub(super) fn mend(&self) {
        self.network.set(Weather::Fair);
        let inboxes: Vec<_> = self.ears().iter().filter_map(|ear| ear.inbox.upgrade()).collect();
        inboxes.iter().for_each(|inbox| inbox.ask_all_again());
    }

    /// The claim with this token has lost its lock, and its manager hears of it.
    pub(super) fn tell_lost(&self, token: OwnerToken) {
        let inboxes: Vec<_> = self.ears().iter().filter_map(|ear| ear.inbox.upgrade()).collect();
        let inbox = inboxes.iter().find(|inbox| inbox.id() == token.inbox());
        if let Some(inbox) = inbox {
            inbox.lost(token);
        }
    }

    /// Signalled at each change of the locks.
    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Looks at the locks, or changes them, without the network.
    pub(super) fn directly<T>(&self, change: impl FnOnce(&MemoryStore) -> T) -> T {
        self.ears().retain(|ear| ear.inbox.strong_count() > 0);
        let changed = change(&self.locks);
        self.changed.notify_waiters();
        changed
    }

    fn ears(&self) -> MutexGuard<'_, Vec<Ear>> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the locks answer; they answer at once.
    fn ask<T>(&self, request: impl FnOnce(&MemoryStore) -> Option<T>) -> Result<T, StoreError> {
        let answer = self.directly(request);
        answer.ok_or_else(|| StoreError::new("the store in memory did not answer at once"))
    }
}

impl Store for ScriptedStore {
    fn acquire<'a>(&'a self, asked: &'a Acquiring) -> StoreFuture<'a, Result<Acquire, StoreError>> {
        let request = || self.ask(|locks| locks.acquire(asked).now_or_never());
        Box::pin(async move { self.network.send(request).await?? })
    }

    fn listen(&self, inbox: &Arc<Inbox>) {
        let (told, wanted) = (Arc::downgrade(inbox), Arc::downgrade(inbox));
        let (network, wanted_network) = (self.network.clone(), self.network.clone());
        let on_wanted = move |name: Option<&str>| {
            let inbox = wanted.upgrade().filter(|_| wanted_network.carries_news());
            if let (Some(inbox), Some(name)) = (inbox, name) {
                inbox.wanted(name);
            }
        };
        let on_news = move |token, news| {
            if let Some(inbox) = told.upgrade().filter(|_| network.carries_news()) {
                inbox.tell(token, news);
            }
        };
        let outside = Arc::new(Inbox::beyond_a_wire(inbox.id(), on_wanted, on_news));
        self.locks.listen(&outside);
        self.ears().push(Ear { inbox: Arc::downgrade(inbox), _outside: outside });
    }

    fn renew<'a>(
        &'a self,
        renewals: &'a [Renewal],
    ) -> StoreFuture<'a, Vec<Result<Renew, StoreError>>> {
        let request = || self.ask(|locks| locks.renew(renewals).now_or_never());
        Box::pin(async move { each(self.network.send(request).await, renewals.len()) })
    }

    fn release<'a>(
        &'a self,
        releases: &'a [Releasing],
    ) -> StoreFuture<'a, Vec<Result<Release, StoreError>>> {
        let request = || self.ask(|locks| locks.release(releases).now_or_never());
        Box::pin(async move { each(self.network.send(request).await, releases.len()) })
    }

    fn holder<'a>(
        &'a self,
        key: &'a LockKey,
    ) -> StoreFuture<'a, Result<Option<Holder>, StoreError>> {
        let request = || self.ask(|locks| locks.holder(key).now_or_never());
        Box::pin(async move { self.network.send(request).await?? })
    }

    fn survey<'a>(&'a self, prefix: &'a str) -> StoreFuture<'a, Result<Vec<HeldLock>, StoreError>> {
        let request = || self.ask(|locks| locks.survey(prefix).now_or_never());
        Box::pin(async move { self.network.send(request).await?? })
    }

    fn evict<'a>(&'a self, key: &'a LockKey) -> StoreFuture<'a, Result<bool, StoreError>> {
        let request = || self.ask(|locks| locks.evict(key).now_or_never());
        Box::pin(async move { self.network.send(request).await?? })
    }

    fn next_token<'a>(
        &'a self,
        key: &'a LockKey,
    ) -> StoreFuture<'a, Result<Option<FencingToken>, StoreError>> {
        let request = || self.ask(|locks| locks.next_token(key).now_or_never());
        Box::pin(async move { self.network.send(request).await?? })
    }

    fn ping(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(self.network.send(|| ()))
    }

    fn knows_companions(&self) -> bool {
        true
    }

    fn can_share_held_locks(&self) -> bool {
        true
    }
}

/// The answers of a batch, or the reason why there are none for each in it.
fn each<T>(
    answer: Result<Result<Vec<Result<T, StoreError>>, StoreError>, StoreError>,
    asked: usize,
) -> Vec<Result<T, StoreError>> {
    match answer.and_then(|answer| answer) {
        Ok(answers) => answers,
        Err(error) => std::iter::repeat_with(|| Err(error.clone())).take(asked).collect(),
    }
}
