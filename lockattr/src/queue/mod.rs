//! The wait queues inside a process. Of all callers that want the same lock, only the head of the
//! queue sends requests to the store. The others wait behind it, and a holder hands the lock to the
//! next waiter without a request to the store (lock cohorting: Dice, Marathe, Shavit, `PPoPP`
//! 2012). No I/O, and no clock of its own.
//!
//! So a process has one entry in the store's wait queue for a lock, however many of its callers
//! wait. A waiter whose wait budget ends needs no request of its own: its whole queue
//! [knows](Waiter::known) what the head learned last.
//!
//! `W` is what a waiter wants, `T` what it is handed, `K` what is known about the lock. This module
//! reads none of them.

mod handoff;
mod head;
mod head_bypass;
mod waiter;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::hash::BuildHasher;
use std::time::Duration;

use crate::platform::sync::{Arc, Instant, Mutex, MutexGuard, NameHasher, SHARDS, oneshot};
use handoff::PendingHandoff;
pub(crate) use handoff::{PICK_UP_TIMEOUT, SelectedWaiter, Unclaimed};
pub(crate) use head::{Head, Next, SharedHead};
use head_bypass::HeadBypass;
use waiter::QueuedWaiter;
pub(crate) use waiter::{Received, Waiter};

/// How often, and for how long, a process hands a lock to its own callers while another process
/// waits for it. Permits always have these limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) count: u32,
    pub(crate) time: Duration,
}

/// All wait queues of a manager, by the names of the locks.
pub(crate) struct WaitQueues<W, T, K = ()> {
    /// Each shard has its own mutex, so that callers of different locks seldom contend.
    shards: [Shard<W, T, K>; SHARDS],
    hasher: NameHasher,
    limits: Limits,
}

type Shard<W, T, K> = Mutex<ByName<W, T, K>>;

/// The name of a lock, shared by its queue and that queue's waiters.
type Name = Arc<str>;

struct ByName<W, T, K> {
    queues: HashMap<Name, WaitQueue<W, T, K>, NameHasher>,
    /// Waiters that were taken out of their queue to send requests in parallel with the head, each
    /// with the claim that it is a companion of. Stored here, because the queue may be removed
    /// before such a waiter is polled.
    probes: HashMap<u64, K>,
    /// The last id given. Waiters and heads share one sequence.
    last_id: u64,
    pending: usize,
}

/// The queue of one lock. It exists while there is a head, a cached lock, or a pending hand-off.
struct WaitQueue<W, T, K> {
    /// The id of the head; [`NO_HEAD`] if only hand-offs are pending. A replaced head has another
    /// id, and its later reports are ignored.
    head: u64,
    waiting: VecDeque<QueuedWaiter<W>>,
    /// Waiters that were taken out of the queue to get the lock. Several, if they share it.
    selected: Vec<u64>,
    pending: Vec<PendingHandoff<T>>,
    /// Since when another process waits, and how many hand-offs there were since then.
    contended: Option<(Instant, u32)>,
    /// How many callers bypassed the head while it waits for the store.
    bypass: Option<HeadBypass>,
    /// Whether the store has answered the head, which is then in the store's queue.
    is_answered: bool,
    /// The lock and the end of its time in the cache, while no caller has it. Boxed, because most
    /// queues belong to locks that a caller holds.
    cached: Option<Box<(T, Instant)>>,
    /// What the head learned last, and whether it is that this process holds the lock.
    known: Option<(K, bool)>,
    /// Waiters to notify when something becomes known.
    known_waiters: Vec<oneshot::Sender<()>>,
    /// The claim that was granted last, and the first id after the waiters that were present then:
    /// those may become its companions.
    companions: Option<(K, u64)>,
    /// The number of signs of life from the head.
    signs: u64,
    /// How many callers have sent requests in parallel with the head since its last report.
    probe_count: u32,
    /// Whether a waiter sends a request for the whole queue, because the head is silent.
    probed_for_all: bool,
}

/// The head of a queue without a head.
const NO_HEAD: u64 = 0;

/// How many callers may send requests in parallel with a head that has no answer yet.
const MAX_PROBES: u32 = 32;

impl<W, T, K> WaitQueue<W, T, K> {
    fn new() -> Self {
        Self {
            head: 0,
            waiting: VecDeque::new(),
            selected: Vec::new(),
            pending: Vec::new(),
            contended: None,
            bypass: None,
            is_answered: false,
            cached: None,
            known: None,
            known_waiters: Vec::new(),
            companions: None,
            signs: 0,
            probe_count: 0,
            probed_for_all: false,
        }
    }

    /// Installs a new head, which has sent no request yet.
    fn set_head(&mut self, head: u64) {
        (self.head, self.is_answered) = (head, false);
    }

    /// Whether the next caller that joins becomes the head.
    fn has_no_head(&self) -> bool {
        self.head == NO_HEAD
    }

    /// Records what is known now, and returns the senders that wake the waiters.
    fn learn(&mut self, known: K, ours: bool) -> Vec<oneshot::Sender<()>> {
        self.known = Some((known, ours));
        self.signs += 1;
        (self.probed_for_all, self.probe_count) = (false, 0);
        std::mem::take(&mut self.known_waiters)
    }
}

impl<W, T, K> ByName<W, T, K> {
    /// Returns a new id, greater than all before.
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Removes the head of this queue, which no caller waits in, and the queue unless a hand-off is
    /// pending.
    fn remove_head(&mut self, name: &str) {
        if let Some(queue) = self.queues.get_mut(name) {
            queue.head = NO_HEAD;
            self.remove_if_empty(name);
        }
    }

    /// Removes the queue of this name if it has neither a head nor pending hand-offs.
    fn remove_if_empty(&mut self, name: &str) {
        let is_over = |queue: &WaitQueue<W, T, K>| {
            queue.has_no_head() && queue.selected.is_empty() && queue.pending.is_empty()
        };
        if self.queues.get(name).is_some_and(is_over) {
            self.queues.remove(name);
        }
    }

    /// Installs a new head in the queue of this name, which is created if needed. Returns its id.
    fn new_head(&mut self, name: &str) -> u64 {
        let id = self.next_id();
        match self.queues.get_mut(name) {
            Some(queue) => queue.set_head(id),
            None => {
                self.queues.insert(name.into(), WaitQueue { head: id, ..WaitQueue::new() });
            }
        }
        id
    }
}

#[derive(Debug)]
pub(crate) enum Joined<W, T, K = ()> {
    /// The caller is the head, and gets the lock if that was cached.
    Head(Head<W, T, K>, Option<T>),
    /// The caller waits behind the head.
    Waiting(Waiter<W, T, K>),
}

#[derive(Debug)]
pub(crate) enum CachedLock<T> {
    Expired(T),
    Until(Instant),
    Gone,
}

impl<W, T, K> WaitQueues<W, T, K> {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let hasher = NameHasher::default();
        let shards = std::array::from_fn(|_| {
            let (queues, probes) = (HashMap::with_hasher(hasher.clone()), HashMap::new());
            Mutex::new(ByName { queues, probes, last_id: 0, pending: 0 })
        });
        Arc::new(Self { shards, hasher, limits })
    }

    /// Joins the queue for the lock of this name. A waiter that left the queue to send a request in
    /// parallel with the head passes its `id` to get its position back.
    pub(crate) fn join(self: &Arc<Self>, name: &str, wants: W, id: Option<u64>) -> Joined<W, T, K>
    where
        W: Clone,
    {
        let mut by_name = self.by_name(name);
        let cached = match by_name.queues.get_mut(name) {
            None => None,
            Some(queue) if queue.cached.is_some() => queue.cached.take(),
            Some(queue) if queue.has_no_head() => None,
            Some(_) => {
                let id = id.unwrap_or_else(|| by_name.next_id());
                return Joined::Waiting(self.join_behind(&mut by_name, name, id, wants));
            }
        };
        Joined::Head(self.head(&mut by_name, name), cached.map(|cached| cached.0))
    }

    /// Returns what `read` makes of what is known about the lock of this name.
    pub(crate) fn read_known<R>(&self, name: &str, read: impl FnOnce(&K) -> R) -> Option<R> {
        let by_name = self.by_name(name);
        by_name.queues.get(name)?.known.as_ref().map(|(known, _)| read(known))
    }

    /// Adds a waiter behind the head, in the order of ids.
    fn join_behind(
        self: &Arc<Self>,
        by_name: &mut ByName<W, T, K>,
        name: &str,
        id: u64,
        wants: W,
    ) -> Waiter<W, T, K>
    where
        W: Clone,
    {
        let (sender, receiver) = oneshot::channel();
        if let Some(queue) = by_name.queues.get_mut(name) {
            let at = queue.waiting.partition_point(|waiter| waiter.id < id);
            queue.waiting.insert(at, QueuedWaiter { id, wants: wants.clone(), sender });
        }
        Waiter { queues: self.clone(), name: name.into(), id, wants, receiver }
    }

    /// Becomes the head for the lock of this name if there is none, and takes the lock if it is
    /// cached.
    pub(crate) fn try_join(self: &Arc<Self>, name: &str) -> Option<(Head<W, T, K>, Option<T>)> {
        let mut by_name = self.by_name(name);
        let id = by_name.next_id();
        let name = Name::from(name);
        // The usual path to a free lock, so it looks the name up only once.
        let cached = match by_name.queues.entry(name.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(WaitQueue { head: id, ..WaitQueue::new() });
                None
            }
            Entry::Occupied(mut queue) => {
                let queue = queue.get_mut();
                let cached = queue.cached.take();
                if cached.is_none() && !queue.has_no_head() {
                    return None;
                }
                queue.set_head(id);
                cached.map(|cached| cached.0)
            }
        };
        Some((Head { queues: self.clone(), name, id, left: false }, cached))
    }

    /// Whether a caller that can share the lock may send a request in parallel with the head: the
    /// head's first request has no answer yet, and no caller waits behind it. Counts the caller, up
    /// to [`MAX_PROBES`].
    pub(crate) fn may_probe(&self, name: &str) -> bool {
        let queues = &mut self.by_name(name).queues;
        let Some(queue) = queues.get_mut(name) else { return false };
        let may =
            queue.known.is_none() && queue.waiting.is_empty() && queue.probe_count < MAX_PROBES;
        queue.probe_count += u32::from(may);
        may
    }

    /// Whether a waiter may send a request for its whole queue, because the head is silent. `true`
    /// for the first caller only.
    pub(crate) fn may_probe_for_all(&self, name: &str) -> bool {
        let queues = &mut self.by_name(name).queues;
        queues
            .get_mut(name)
            .is_some_and(|queue| !std::mem::replace(&mut queue.probed_for_all, true))
    }

    /// Records what a caller learned that sent a request in parallel with the head.
    pub(crate) fn learned(&self, name: &str, known: K) {
        self.learned_if(name, known, |_| true);
    }

    /// Records what a caller learned that sent a request for the whole queue; ignored if it sent
    /// one only for itself.
    pub(crate) fn learned_for_all(&self, name: &str, known: K) {
        self.learned_if(name, known, |queue| queue.probed_for_all);
    }

    fn learned_if(&self, name: &str, known: K, concerns: impl FnOnce(&WaitQueue<W, T, K>) -> bool) {
        let known_waiters = {
            let queues = &mut self.by_name(name).queues;
            let queue =
                queues.get_mut(name).filter(|queue| queue.known.is_none() && concerns(queue));
            let Some(queue) = queue else { return };
            queue.learn(known, false)
        };
        wake(known_waiters);
    }

    /// A caller that sent a request for the whole queue is gone without an answer: another may try.
    pub(crate) fn probe_ended(&self, name: &str) {
        let known_waiters = {
            let queues = &mut self.by_name(name).queues;
            let Some(queue) = queues.get_mut(name).filter(|queue| queue.known.is_none()) else {
                return;
            };
            queue.probed_for_all = false;
            std::mem::take(&mut queue.known_waiters)
        };
        wake(known_waiters);
    }

    /// The lock was granted in a mode that others can share. The waiters that are present now may
    /// share the place of `granted` in the store's queue. Later ones may not, or other processes
    /// would starve.
    pub(crate) fn share(&self, name: &str, granted: K) {
        let mut by_name = self.by_name(name);
        let next = by_name.last_id + 1;
        if let Some(queue) = by_name.queues.get_mut(name) {
            queue.companions = Some((granted, next));
        }
    }

    /// The claim whose place the waiter with this id may share.
    pub(crate) fn companion(&self, name: &str, id: u64) -> Option<K>
    where
        K: Clone,
    {
        let by_name = self.by_name(name);
        let companions = by_name.queues.get(name)?.companions.as_ref();
        companions.filter(|(_, next)| id < *next).map(|(granted, _)| granted.clone())
    }

    /// The id of the head, and a counter that grows while the head is alive.
    pub(crate) fn signs(&self, name: &str) -> Option<(u64, u64)> {
        self.by_name(name).queues.get(name).map(|queue| (queue.head, queue.signs))
    }

    /// Replaces a head that has shown no sign of life since `signs` and does not hold the lock.
    pub(crate) fn skip_silent_head(&self, name: &str, signs: (u64, u64)) {
        let waiter = {
            let mut by_name = self.by_name(name);
            let Some(queue) = by_name.queues.get_mut(name) else { return };
            let has_it = queue.known.as_ref().is_some_and(|(_, ours)| *ours);
            if has_it || (queue.head, queue.signs) != signs {
                return;
            }
            queue.known = None;
            by_name.promote_next(name)
        };
        // The mutex is unlocked first: the woken waiter may lock it.
        if let Some(waiter) = waiter {
            waiter.notify();
        }
    }

    /// The lock was granted in a mode that others can share. The first `count` waiters that may
    /// share its place, and can share the lock, send requests too, all at once.
    pub(crate) fn send_probes(&self, name: &str, count: usize, can_share: impl Fn(&W) -> bool)
    where
        K: Clone,
    {
        let probes: Vec<_> = {
            let mut by_name = self.by_name(name);
            let ByName { queues, probes, .. } = &mut *by_name;
            let Some(queue) = queues.get_mut(name) else { return };
            let Some((granted, next)) = &queue.companions else { return };
            let may_probe = |one: &&QueuedWaiter<W>| one.id < *next && can_share(&one.wants);
            let count = queue.waiting.iter().take(count).take_while(may_probe).count();
            let sent: Vec<_> = queue.waiting.drain(..count).collect();
            probes.extend(sent.iter().map(|waiter| (waiter.id, granted.clone())));
            sent
        };
        // The mutex is unlocked first: a woken waiter may lock it.
        probes.into_iter().for_each(QueuedWaiter::notify);
    }

    /// Replaces a head whose lock is lost according to `lost`. The first waiter becomes the head.
    pub(crate) fn skip_lost_head(&self, name: &str, lost: impl Fn(&K) -> bool) {
        let waiter = {
            let mut by_name = self.by_name(name);
            let Some(queue) = by_name.queues.get_mut(name) else { return };
            if !queue.known.as_ref().is_some_and(|(known, ours)| *ours && lost(known)) {
                return;
            }
            queue.known = None;
            by_name.promote_next(name)
        };
        // The mutex is unlocked first: the woken waiter may lock it.
        if let Some(waiter) = waiter {
            waiter.notify();
        }
    }

    /// Makes the caller the head of the queue of this name, which is created if needed.
    fn head(self: &Arc<Self>, by_name: &mut ByName<W, T, K>, name: &str) -> Head<W, T, K> {
        let id = by_name.new_head(name);
        Head { queues: self.clone(), name: name.into(), id, left: false }
    }

    /// Records that another process waits for the lock of this name or, without a name, for any
    /// lock. Returns the cached locks, which the caller has to release.
    #[must_use = "the locks are no longer cached, and must be released"]
    pub(crate) fn contended(&self, name: Option<&str>, now: Instant) -> Vec<T> {
        let note = |queue: &mut WaitQueue<W, T, K>| {
            queue.contended.get_or_insert((now, 0));
        };
        // In one step for each lock, so that a caller that takes a cached lock meanwhile also gets
        // the note.
        let Some(name) = name else {
            return self.take_all_cached(|queues| queues.values_mut().for_each(note));
        };
        let queues = &mut self.by_name(name).queues;
        let cached = take_cached(queues, name);
        queues.get_mut(name).into_iter().for_each(note);
        cached.into_iter().collect()
    }

    /// Takes the cached lock of this name or, without a name, all cached locks.
    #[must_use = "the locks are no longer cached, and must be released"]
    pub(crate) fn take_cached(&self, name: Option<&str>) -> Vec<T> {
        match name {
            Some(name) => take_cached(&mut self.by_name(name).queues, name).into_iter().collect(),
            None => self.take_all_cached(|_| {}),
        }
    }

    /// Takes all cached locks; `also` runs in the same step.
    fn take_all_cached(
        &self,
        also: impl Fn(&mut HashMap<Name, WaitQueue<W, T, K>, NameHasher>),
    ) -> Vec<T> {
        let mut cached = Vec::new();
        for shard in &self.shards {
            let queues = &mut locked(shard).queues;
            cached.extend(queues.extract_if(|_, queue| queue.cached.is_some()));
            also(queues);
        }
        // Sorted, because the order of a map differs from run to run.
        cached.sort_by(|(one, _), (other, _)| one.cmp(other));
        cached.into_iter().filter_map(|(_, queue)| queue.cached).map(|cached| cached.0).collect()
    }

    /// Returns whether the cached lock of this name has to be released at `now`.
    pub(crate) fn check_cached(&self, name: &str, now: Instant) -> CachedLock<T> {
        let queues = &mut self.by_name(name).queues;
        match queues.get(name).and_then(|queue| queue.cached.as_ref()).map(|cached| cached.1) {
            None => CachedLock::Gone,
            Some(until) if until > now => CachedLock::Until(until),
            Some(_) => {
                let cached = queues.remove(name).and_then(|queue| queue.cached);
                cached.map_or(CachedLock::Gone, |cached| CachedLock::Expired(cached.0))
            }
        }
    }

    fn by_name(&self, name: &str) -> MutexGuard<'_, ByName<W, T, K>> {
        // The upper bits, because the maps use the others. The remainder fits.
        let shard = (self.hasher.hash_one(name) >> 32) as usize % SHARDS;
        locked(&self.shards[shard])
    }
}

fn locked<W, T, K>(shard: &Shard<W, T, K>) -> MutexGuard<'_, ByName<W, T, K>> {
    // No panic can leave this half-changed, so a poisoned mutex is safe to use.
    shard.lock()
}

fn take_cached<W, T, K>(
    queues: &mut HashMap<Name, WaitQueue<W, T, K>, NameHasher>,
    name: &str,
) -> Option<T> {
    queues.get(name)?.cached.as_ref()?;
    queues.remove(name)?.cached.map(|cached| cached.0)
}

/// Call without the mutex: a woken waiter may lock it.
fn wake(known_waiters: Vec<oneshot::Sender<()>>) {
    for sender in known_waiters {
        // The receiver may be gone.
        let _gone: Result<(), ()> = sender.send(());
    }
}
