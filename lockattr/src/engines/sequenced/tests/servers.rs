//! Servers in memory, for schedules that real servers cannot be brought into: they execute
//! requests, and reply as the test says.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::engines::sequenced::{
    ClaimEntries, Entered, Entry, EntryValue, LockQueue, LockRecipe, NewEntry, StoreThread,
};
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
    AnsweredLate(Arc<Notify>),
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
    number: u64,
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
    pub(super) fn next(&self, question: &'static str, fate: Fate) {
        self.state().fates.entry(question).or_default().push_back(fate);
    }

    /// Delays the next request of this name until the result is notified.
    pub(super) fn late(&self, question: &'static str) -> Arc<Notify> {
        let told = Arc::<Notify>::default();
        self.next(question, Fate::Late(told.clone()));
        told
    }

    /// The same, but delays only the reply.
    pub(super) fn answered_late(&self, question: &'static str) -> Arc<Notify> {
        let told = Arc::<Notify>::default();
        self.next(question, Fate::AnsweredLate(told.clone()));
        told
    }

    /// The tokens of the entries in this queue.
    pub(super) fn queue(&self, name: &str) -> Vec<OwnerToken> {
        let kept = self.entries(name);
        kept.iter().map(|entry| entry.token).collect()
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
        let kept = state.queues.get(name).into_iter().flatten();
        kept.map(|kept| kept.entry.clone()).collect()
    }

    fn session(&self) -> u64 {
        self.state().session
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Executes a request with the fate that the test set.
    async fn asked<T>(
        &self,
        question: &'static str,
        done: impl FnOnce(&mut State) -> T,
    ) -> Result<T, StoreError> {
        let fate = self.state().fates.get_mut(question).and_then(VecDeque::pop_front);
        let done = || {
            let answer = done(&mut self.state());
            self.changed.send_replace(());
            answer
        };
        match fate {
            None => Ok(done()),
            Some(Fate::Lost) => {
                done();
                Err(StoreError::new("no answer"))
            }
            Some(Fate::NotSent) => Err(StoreError::new("no connection").not_sent()),
            Some(Fate::Late(told)) => {
                told.notified().await;
                Ok(done())
            }
            Some(Fate::AnsweredLate(told)) => {
                let answer = done();
                told.notified().await;
                Ok(answer)
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
        f.write_str("Fake")
    }
}

impl State {
    fn queue(&mut self, key: &LockKey) -> &mut Vec<StoredEntry> {
        self.queues.entry(key.name().into()).or_default()
    }

    /// Whether this entry is in the queue.
    fn is_there(&mut self, key: &LockKey, entry: &Entry) -> bool {
        self.queue(key).iter().any(|kept| kept.entry == *entry)
    }

    fn enter(&mut self, entry: &NewEntry<'_>) -> Entered {
        self.last += 1;
        let (number, session) = (self.last, self.session);
        let NewEntry { keys, token, sharing, value } = *entry;
        for key in keys {
            let (several, id) = (keys.len() > 1, number.to_string().into());
            let entry = Entry { sequence: number, token, sharing, several, id };
            self.queue(key).push(StoredEntry { entry, value: value.into(), number });
        }
        Entered { session, number, queues: self.queues_of(keys) }
    }

    /// Returns what the claim already has, if that is an entry in each of its queues.
    fn adopt(&mut self, entry: &NewEntry<'_>) -> Option<Entered> {
        let mut number = None;
        for key in entry.keys {
            number = Some(self.queue(key).iter().find(|it| it.entry.token == entry.token)?.number);
        }
        Some(Entered { session: self.session, number: number?, queues: self.queues_of(entry.keys) })
    }

    fn queues_of(&mut self, keys: &[LockKey]) -> Vec<Vec<Entry>> {
        let queue = |key| self.queue(key).iter().map(|kept| kept.entry.clone()).collect();
        keys.iter().map(queue).collect()
    }

    fn leave(&mut self, held: &ClaimEntries<'_>) -> bool {
        let mut all = true;
        for (nth, key) in held.keys.iter().enumerate() {
            let queue = self.queue(key);
            let before = queue.len();
            queue.retain(|kept| match held.entries.get(nth) {
                Some(entry) => kept.entry != *entry,
                None => kept.entry.token != held.token,
            });
            all &= queue.len() < before;
        }
        all
    }
}

impl LockRecipe for FakeRecipe {
    async fn enter(&self, entry: &NewEntry<'_>, again: bool) -> Result<Entered, StoreError> {
        let enter = |state: &mut State| match again.then(|| state.adopt(entry)).flatten() {
            Some(found) => found,
            None => state.enter(entry),
        };
        self.servers.asked("enter", enter).await
    }

    async fn queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        let queue = |state: &mut State| state.queues_of(std::slice::from_ref(key)).remove(0);
        self.servers.asked("line", queue).await
    }

    async fn latest_queue(&self, key: &LockKey) -> Result<Vec<Entry>, StoreError> {
        self.queue(key).await
    }

    async fn queues(&self, _prefix: &str) -> Result<Vec<LockQueue>, StoreError> {
        Err(StoreError::new("nobody asks for them"))
    }

    async fn value(&self, key: &LockKey, entry: &Entry) -> Result<Option<EntryValue>, StoreError> {
        let value = |state: &mut State| {
            let kept = state.queue(key).iter().find(|kept| kept.entry == *entry)?;
            Some(EntryValue { value: kept.value.clone(), number: kept.number })
        };
        self.servers.asked("value", value).await
    }

    async fn gone(&self, key: &LockKey, entry: &Entry) {
        self.servers.until(|| !self.servers.state().is_there(key, entry)).await;
    }

    async fn grown(&self, key: &LockKey, seen: &[Entry]) {
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
        match self.servers.asked("confirm", confirm).await {
            Ok(there) => there.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); held.len()],
        }
    }

    async fn leave(&self, held: &[ClaimEntries<'_>]) -> Vec<Result<bool, StoreError>> {
        let leave = |state: &mut State| held.iter().map(|it| state.leave(it)).collect::<Vec<_>>();
        match self.servers.asked("leave", leave).await {
            Ok(left) => left.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); held.len()],
        }
    }

    async fn ended(&self, session: u64) {
        self.servers.until(|| self.servers.session() != session).await;
    }

    fn answered_since(&self, _since: Instant) -> bool {
        false
    }

    fn keeps_for(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn thread(&self) -> &StoreThread {
        &self.thread
    }
}
