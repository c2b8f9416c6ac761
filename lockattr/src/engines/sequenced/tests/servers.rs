//! Servers in memory, for schedules that real servers cannot be brought into: they execute
//! requests, and reply as the test says.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::engines::sequenced::{
    ClaimEntries, Entered, Entry, EntryValue, LockQueues, LockRecipe, NewEntry, Permit, StoreThread,
};
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{LockKey, OwnerToken, StoreError};

/// The fate of one request.
pub(super) enum Fate {
    /// It is executed, and its reply is lost.
    Lost,
    /// It is not executed, and the error reports it.
    NotSent,
    /// It is executed when notified.
    Late(Arc<Notify>),
    /// It is executed, and answered when notified.
    RepliedLate(Arc<Notify>),
}

/// The state of the servers; cheap to clone.
#[derive(Clone)]
pub(super) struct Servers {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<()>,
}

struct State {
    queues: BTreeMap<String, Vec<StoredEntry>>,
    last: u64,
    session: u64,
    fates: HashMap<&'static str, VecDeque<Fate>>,
}

#[derive(Clone)]
struct StoredEntry {
    entry: Entry,
    value: String,
    counter: u64,
}

impl Servers {
    pub(super) fn new() -> Self {
        let (queues, fates) = Default::default();
        let state = State { queues, last: 0, session: 1, fates };
        Self { state: Arc::new(Mutex::new(state)), changed: watch::Sender::new(()) }
    }

    /// One process's client of the ensemble, on the runtime of the test.
    pub(super) fn recipe(&self) -> FakeRecipe {
        FakeRecipe {
            servers: self.clone(),
            thread: StoreThread::of(tokio::runtime::Handle::current()),
        }
    }

    /// Sets the fate of the next request of this name.
    pub(super) fn next(&self, operation: &'static str, fate: Fate) {
        self.state().fates.entry(operation).or_default().push_back(fate);
    }

    /// Delays the next request of this name until the result is notified.
    pub(super) fn late(&self, operation: &'static str) -> Arc<Notify> {
        let gate = Arc::<Notify>::default();
        self.next(operation, Fate::Late(gate.clone()));
        gate
    }

    /// The same, but delays only the reply.
    pub(super) fn reply_late(&self, operation: &'static str) -> Arc<Notify> {
        let gate = Arc::<Notify>::default();
        self.next(operation, Fate::RepliedLate(gate.clone()));
        gate
    }

    /// The tokens of the entries in this queue.
    pub(super) fn queue(&self, name: &str) -> Vec<OwnerToken> {
        let stored = self.entries(name);
        stored.iter().map(|entry| entry.token).collect()
    }

    /// Removes an entry by hand.
    pub(super) fn remove(&self, name: &str, token: OwnerToken) {
        self.state().queues.entry(name.into()).or_default().retain(|it| it.entry.token != token);
        self.changed.send_replace(());
    }

    /// Ends the session, and removes all entries with it.
    pub(super) fn end_session(&self) {
        {
            let mut state = self.state();
            state.queues.clear();
            state.session += 1;
        }
        self.changed.send_replace(());
    }

    fn entries(&self, name: &str) -> Vec<Entry> {
        let state = self.state();
        let stored = state.queues.get(name).into_iter().flatten();
        stored.map(|stored| stored.entry.clone()).collect()
    }

    fn session(&self) -> u64 {
        self.state().session
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Executes a request with the fate that the test set.
    async fn request<T>(
        &self,
        operation: &'static str,
        apply: impl FnOnce(&mut State) -> T,
    ) -> Result<T, StoreError> {
        let fate = self.state().fates.get_mut(operation).and_then(VecDeque::pop_front);
        let apply = || {
            let outcome = apply(&mut self.state());
            self.changed.send_replace(());
            outcome
        };
        match fate {
            None => Ok(apply()),
            Some(Fate::Lost) => {
                apply();
                Err(StoreError::new("no reply"))
            }
            Some(Fate::NotSent) => Err(StoreError::new("no connection").not_sent()),
            Some(Fate::Late(gate)) => {
                gate.notified().await;
                Ok(apply())
            }
            Some(Fate::RepliedLate(gate)) => {
                let outcome = apply();
                gate.notified().await;
                Ok(outcome)
            }
        }
    }

    /// Returns once `so` is true.
    async fn until(&self, so: impl Fn() -> bool) {
        let mut changed = self.changed.subscribe();
        while !so() {
            changed.changed().await.unwrap();
        }
    }
}

/// One process's client of the servers.
pub(super) struct FakeRecipe {
    servers: Servers,
    thread: StoreThread,
}

impl fmt::Debug for FakeRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeRecipe")
    }
}

impl State {
    fn queue(&mut self, key: &LockKey) -> &mut Vec<StoredEntry> {
        self.queues.entry(key.name().into()).or_default()
    }

    /// Whether this entry is in the queue.
    fn is_there(&mut self, key: &LockKey, entry: &Entry) -> bool {
        self.queue(key).iter().any(|stored| stored.entry == *entry)
    }

    fn enter(&mut self, entry: &NewEntry<'_>) -> Entered {
        self.last += 1;
        let (counter, session) = (self.last, self.session);
        let NewEntry { keys, token, sharing, value } = *entry;
        for key in keys {
            let (several, id) = (keys.len() > 1, counter.to_string().into());
            let entry = Entry { sequence: counter, token, sharing, several, id };
            self.queue(key).push(StoredEntry { entry, value: value.into(), counter });
        }
        Entered { session, counter, queues: self.queues_of(keys) }
    }

    /// Returns what the claim already has, if that is an entry in each of its queues.
    fn adopt(&mut self, entry: &NewEntry<'_>) -> Option<Entered> {
        let mut counter = None;
        for key in entry.keys {
            counter =
                Some(self.queue(key).iter().find(|it| it.entry.token == entry.token)?.counter);
        }
        Some(Entered {
            session: self.session,
            counter: counter?,
            queues: self.queues_of(entry.keys),
        })
    }

    fn queues_of(&mut self, keys: &[LockKey]) -> Vec<Vec<Entry>> {
        let queue = |key| self.queue(key).iter().map(|stored| stored.entry.clone()).collect();
        keys.iter().map(queue).collect()
    }

    fn leave(&mut self, held: &ClaimEntries<'_>) -> bool {
        let mut all = true;
        for (nth, key) in held.keys.iter().enumerate() {
            let queue = self.queue(key);
            let before = queue.len();
            queue.retain(|stored| match held.entries.get(nth) {
                Some(entry) => stored.entry != *entry,
                None => stored.entry.token != held.token,
            });
            all &= queue.len() < before;
        }
        all
    }
}

impl LockRecipe for FakeRecipe {
    async fn ready(&self, permit: Permit) -> Result<Permit, StoreError> {
        Ok(permit)
    }

    async fn enter(
        &self,
        entry: &NewEntry<'_>,
        again: bool,
        _permit: Permit,
    ) -> Result<Entered, StoreError> {
        let enter = |state: &mut State| match again.then(|| state.adopt(entry)).flatten() {
            Some(found) => found,
            None => state.enter(entry),
        };
        self.servers.request("enter", enter).await
    }

    async fn queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        let queue = |state: &mut State| state.queues_of(std::slice::from_ref(key)).remove(0);
        self.servers.request("queue", queue).await
    }

    async fn latest_queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        self.queue(key).await
    }

    async fn queues(&self, _prefix: &str) -> Result<LockQueues, StoreError> {
        Err(StoreError::new("these tests list no locks"))
    }

    async fn value(&self, key: &LockKey, entry: &Entry) -> Result<Option<EntryValue>, StoreError> {
        let value = |state: &mut State| {
            let stored = state.queue(key).iter().find(|stored| stored.entry == *entry)?;
            Some(EntryValue { value: stored.value.clone(), counter: stored.counter })
        };
        self.servers.request("value", value).await
    }

    async fn wait_until_gone(&self, key: &LockKey, entry: &Entry, permit: Permit) {
        drop(permit);
        self.servers.until(|| !self.servers.state().is_there(key, entry)).await;
    }

    async fn wait_until_grown(&self, key: &LockKey, seen: &[Entry], permit: Permit) {
        drop(permit);
        let grown = || self.servers.entries(key.name()).iter().any(|entry| !seen.contains(entry));
        self.servers.until(grown).await;
    }

    async fn confirm(&self, held: &[ClaimEntries<'_>]) -> Vec<Result<bool, StoreError>> {
        let confirm = |state: &mut State| {
            let mut there = |held: &ClaimEntries<'_>| {
                let mut entries = held.keys.iter().zip(held.entries);
                held.session == state.session && entries.all(|(key, it)| state.is_there(key, it))
            };
            held.iter().map(&mut there).collect::<Vec<_>>()
        };
        match self.servers.request("confirm", confirm).await {
            Ok(there) => there.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); held.len()],
        }
    }

    async fn leave(
        &self,
        held: &[ClaimEntries<'_>],
        _permit: Permit,
    ) -> Vec<Result<bool, StoreError>> {
        let leave = |state: &mut State| held.iter().map(|it| state.leave(it)).collect::<Vec<_>>();
        match self.servers.request("leave", leave).await {
            Ok(left) => left.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); held.len()],
        }
    }

    async fn wait_until_ended(&self, session: u64) {
        self.servers.until(|| self.servers.session() != session).await;
    }

    async fn unless_silent<T: Send>(
        &self,
        until: impl Future<Output = T> + Send,
    ) -> Result<T, StoreError> {
        Ok(until.await)
    }

    fn max_ttl(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn thread(&self) -> &StoreThread {
        &self.thread
    }
}
