//! The wait queues inside a process. Of all callers that want the same lock, the head of the queue asks the
//! store. The others wait behind it, and a holder hands the lock to the next one without asking the store
//! (lock cohorting: Dice, Marathe, Shavit, `PPoPP` 2012). No I/O, and no clock of its own.
//!
//! So a process has one entry in the store's wait queue for a lock, however many of its callers wait, and a
//! waiter whose wait budget ends need not ask the store: all of its queue [knows](Waiter::known) what the head
//! learned last.
//!
//! `W` is what a waiter wants, `T` what it is handed, `K` what is known of the lock: none of them is
//! read here.

mod handoff;
mod head;
mod head_bypass;
mod waiter;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::hash::BuildHasher;
use std::time::Duration;

use crate::platform::sync::{
    Arc, Instant, Mutex, MutexGuard, NameHasher, PoisonError, SHARDS, oneshot,
};
use handoff::PendingHandoff;
pub(crate) use handoff::{PICK_UP_TIMEOUT, SelectedWaiter, Unclaimed};
pub(crate) use head::{Head, Next, SharedHead};
use head_bypass::HeadBypass;
use waiter::QueuedWaiter;
pub(crate) use waiter::{Received, Waiter};

/// How often, and for how long, a process hands a lock to its own callers while another process waits for it.
/// Permits always have these limits.
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

/// A name, shared by its queue and those who stand in it.
type Name = Arc<str>;

struct ByName<W, T, K> {
    queues: HashMap<Name, WaitQueue<W, T, K>, NameHasher>,
    /// Waiters that were taken out to ask the store beside the head, and with what they share their place.
    /// Not in their queue: that may be gone before they come to it.
    probes: HashMap<u64, K>,
    /// The last number given. Waiters and heads are numbered together.
    last_id: u64,
    pending: usize,
}

/// One queue: there is one as long as somebody is ahead, or the lock is kept here, or a turn is on its way.
struct WaitQueue<W, T, K> {
    /// The number of its head. One that was passed over has another, and nothing to say any more. [`NO_HEAD`]
    /// if a turn is on its way and else no caller is here.
    head: u64,
    waiting: VecDeque<QueuedWaiter<W>>,
    /// Waiters that were taken out to get the lock. Several, if they share it.
    selected: Vec<u64>,
    pending: Vec<PendingHandoff<T>>,
    /// Since when another process waits, and how often the lock was handed off since.
    contended: Option<(Instant, u32)>,
    /// Callers that bypass the head while it asks the store.
    bypass: Option<HeadBypass>,
    /// Whether the head has an answer, and so is in the store's queue.
    is_answered: bool,
    /// The lock, while no caller has it and it is kept for the next call; and until when.
    /// Boxed, because most lines are of locks that somebody has.
    cached: Option<Box<(T, Instant)>>,
    /// What the head learned last, and whether that is that this process holds the lock.
    known: Option<(K, bool)>,
    /// Waiters to notify when something is known.
    known_waiters: Vec<oneshot::Sender<()>>,
    /// The claim that present waiters may be companions of since the last grant, and the first number after
    /// theirs.
    companions: Option<(K, u64)>,
    /// How often the head showed that it is alive.
    signs: u64,
    /// How many callers have asked in parallel with the head since it began to ask.
    probe_count: u32,
    /// Whether a waiter asks the store for the whole queue, because the head is silent.
    probed_for_all: bool,
}

/// The head of a queue that has none.
const NO_HEAD: u64 = 0;

/// How many callers at most ask in parallel with a head that has no answer yet.
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

    /// Installs another head, which has not asked yet.
    fn set_head(&mut self, head: u64) {
        (self.head, self.is_answered) = (head, false);
    }

    /// Whether a caller that comes is the head.
    fn has_no_head(&self) -> bool {
        self.head == NO_HEAD
    }

    /// Records what is known now, and returns the waiters to wake.
    fn learn(&mut self, known: K, ours: bool) -> Vec<oneshot::Sender<()>> {
        self.known = Some((known, ours));
        self.signs += 1;
        (self.probed_for_all, self.probe_count) = (false, 0);
        std::mem::take(&mut self.known_waiters)
    }
}

impl<W, T, K> ByName<W, T, K> {
    /// A new number, greater than all before.
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The queue of this name has no head any more, and no caller waits there. It goes when no turn is on its way.
    fn remove_head(&mut self, name: &str) {
        if let Some(queue) = self.queues.get_mut(name) {
            queue.head = NO_HEAD;
            self.remove_if_empty(name);
        }
    }

    /// Forgets the queue of this name, if it is there for no caller.
    fn remove_if_empty(&mut self, name: &str) {
        let is_over = |queue: &WaitQueue<W, T, K>| {
            queue.has_no_head() && queue.selected.is_empty() && queue.pending.is_empty()
        };
        if self.queues.get(name).is_some_and(is_over) {
            self.queues.remove(name);
        }
    }

    /// Makes a new head of the queue of this name, which is there from now on: its number.
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
    /// It is the head, and has the lock if that was cached.
    Head(Head<W, T, K>, Option<T>),
    /// It waits behind the head.
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

    /// Joins the queue for the lock of this name. A caller that left the queue to ask in parallel with the head passes
    /// its `id` to get its place back.
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

    /// What `tell` makes of what is known of the lock of this name.
    pub(crate) fn read_known<R>(&self, name: &str, read: impl FnOnce(&K) -> R) -> Option<R> {
        let by_name = self.by_name(name);
        by_name.queues.get(name)?.known.as_ref().map(|(known, _)| read(known))
    }

    /// A place in the queue of this name, in the order of the numbers.
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
        let (sender, turn) = oneshot::channel();
        if let Some(queue) = by_name.queues.get_mut(name) {
            let at = queue.waiting.partition_point(|waiter| waiter.id < id);
            queue.waiting.insert(at, QueuedWaiter { id, wants: wants.clone(), turn: sender });
        }
        Waiter { queues: self.clone(), name: name.into(), id, wants, turn }
    }

    /// The place in front for the lock of this name, if no caller has it, and the lock if it is kept.
    pub(crate) fn try_join(self: &Arc<Self>, name: &str) -> Option<(Head<W, T, K>, Option<T>)> {
        let mut by_name = self.by_name(name);
        let id = by_name.next_id();
        let name = Name::from(name);
        // The usual way to a free lock: its name is looked up once.
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

    /// Whether a caller that could share the lock may ask the store in parallel with the head: the head's first request
    /// has no answer yet, and no caller waits behind it. At most [`MAX_PROBES`] may.
    pub(crate) fn may_probe(&self, name: &str) -> bool {
        let queues = &mut self.by_name(name).queues;
        let Some(queue) = queues.get_mut(name) else { return false };
        let may =
            queue.known.is_none() && queue.waiting.is_empty() && queue.probe_count < MAX_PROBES;
        queue.probe_count += u32::from(may);
        may
    }

    /// Whether a waiter may ask the store for its whole queue, because the head is silent. Only
    /// the first caller of this method may.
    pub(crate) fn may_probe_for_all(&self, name: &str) -> bool {
        let queues = &mut self.by_name(name).queues;
        queues
            .get_mut(name)
            .is_some_and(|queue| !std::mem::replace(&mut queue.probed_for_all, true))
    }

    /// Records what a caller that asked in parallel with the head has learned.
    pub(crate) fn learned(&self, name: &str, known: K) {
        self.learned_if(name, known, |_| true);
    }

    /// A caller learned this that asked beside the head: for all, or it is no other caller's concern.
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

    /// A caller that asked for all is gone without an answer, and another may.
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

    /// The lock was granted in a mode that others can share. The present waiters share the place of `granted`
    /// in the store's queue. Later ones do not, or other processes would starve.
    pub(crate) fn share(&self, name: &str, granted: K) {
        let mut by_name = self.by_name(name);
        let next = by_name.last_id + 1;
        if let Some(queue) = by_name.queues.get_mut(name) {
            queue.companions = Some((granted, next));
        }
    }

    /// The claim whose place the waiter of this number shares.
    pub(crate) fn companion(&self, name: &str, id: u64) -> Option<K>
    where
        K: Clone,
    {
        let by_name = self.by_name(name);
        let companions = by_name.queues.get(name)?.companions.as_ref();
        companions.filter(|(_, next)| id < *next).map(|(granted, _)| granted.clone())
    }

    /// The head's number, and a counter that grows as long as the head is alive.
    pub(crate) fn signs(&self, name: &str) -> Option<(u64, u64)> {
        self.by_name(name).queues.get(name).map(|queue| (queue.head, queue.signs))
    }

    /// Replaces a head that has shown no sign of life since `signs`, and does not hold the lock.
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

    /// The lock was granted in a mode that others can share. The first `count` waiters that share the place,
    /// and can share the lock, ask the store too, all at once.
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
        // Not while the lines are locked: a waiter that is woken may want them.
        probes.into_iter().for_each(QueuedWaiter::notify);
    }

    /// Replaces a head whose lock is lost according to `lost`. The first waiter then asks the store.
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

    /// A head of the queue of this name, which is there from now on.
    fn head(self: &Arc<Self>, by_name: &mut ByName<W, T, K>, name: &str) -> Head<W, T, K> {
        let id = by_name.new_head(name);
        Head { queues: self.clone(), name: name.into(), id, left: false }
    }

    /// Another process waits for the lock of this name, or, without a name, for any of them. Returns the
    /// cached ones, which the caller has to release.
    #[must_use = "they are not kept any more"]
    pub(crate) fn contended(&self, name: Option<&str>, now: Instant) -> Vec<T> {
        let note = |queue: &mut WaitQueue<W, T, K>| {
            queue.contended.get_or_insert((now, 0));
        };
        // In one step for each lock: the caller that takes a kept lock just then takes the note along.
        let Some(name) = name else {
            return self.take_all_cached(|queues| queues.values_mut().for_each(note));
        };
        let queues = &mut self.by_name(name).queues;
        let cached = take_cached(queues, name);
        queues.get_mut(name).into_iter().for_each(note);
        cached.into_iter().collect()
    }

    /// The cached lock of this name, or, without a name, all cached locks.
    #[must_use = "they are not kept any more"]
    pub(crate) fn take_cached(&self, name: Option<&str>) -> Vec<T> {
        match name {
            Some(name) => take_cached(&mut self.by_name(name).queues, name).into_iter().collect(),
            None => self.take_all_cached(|_| {}),
        }
    }

    /// All cached locks; `also` runs in the same step.
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

    /// What is to be done at `now` with the lock of this name.
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
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_cached<W, T, K>(
    queues: &mut HashMap<Name, WaitQueue<W, T, K>, NameHasher>,
    name: &str,
) -> Option<T> {
    queues.get(name)?.cached.as_ref()?;
    queues.remove(name)?.cached.map(|cached| cached.0)
}

/// Only without the mutex: a woken waiter may lock it.
fn wake(known_waiters: Vec<oneshot::Sender<()>>) {
    for one in known_waiters {
        // The receiver may be gone.
        let _gone: Result<(), ()> = one.send(());
    }
}
