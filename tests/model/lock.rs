//! A model of a lock in a store and of its holder: `hold/guard/destination.rs`, reduced to the
//! order of the hand-offs.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Mutex as Unseen, Weak};
use std::time::Duration;

use crate::explore::{Ends, Waits};
use crate::inside::Inside;
use crate::sync::{Arc, Instant, Mutex, PoisonError, oneshot};
use crate::wait_queue::{self, Joined, Limits, Next, Received};

pub(crate) const NAME: &str = "the one lock";

/// Time stands still, except where a model names a later time.
pub(crate) const NOW: Instant = Instant(Duration::from_secs(100));

pub(crate) const LIMITS: Limits = Limits { count: 1, time: Duration::from_secs(1) };

/// What a waiter wants. `fits`: the lock may be handed to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wants {
    pub(crate) fits: bool,
}

pub(crate) type WaitQueues = wait_queue::WaitQueues<Wants, Lock>;
pub(crate) type Head = wait_queue::Head<Wants, Lock>;
pub(crate) type Waiter = wait_queue::Waiter<Wants, Lock>;

/// What all tasks of one run share. Its drop checks that nothing is left anywhere.
pub(crate) struct World {
    pub(crate) lines: Arc<WaitQueues>,
    store: Mutex<Store>,
    inside: Inside,
    /// No task decides by this, so reading it is not a step.
    log: Unseen<Log>,
    kind: Kind,
    contended: Mutex<Wanted>,
    stay: String,
    ends: Ends,
}

/// What happens to a released lock that no waiter here gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It is released to the store.
    GoesBack,
    /// It is cached for the next caller.
    IsKept,
    /// It bypasses the head, which asks the store.
    IsPermit,
}

/// The lock in the store. A caller that asks while it is taken is notified later.
#[derive(Default)]
struct Store {
    taken: bool,
    waiting: VecDeque<oneshot::Sender<()>>,
}

#[derive(Default)]
struct Log {
    /// The holders, in order.
    had_it: String,
    grants: u32,
    returns: u32,
}

/// Whether this process knows that another process waits, and how often the lock was handed off
/// since it knows and since the store last granted the lock.
#[derive(Default)]
struct Wanted {
    known: bool,
    handed: u32,
    /// How often the store has granted the lock.
    grants: u32,
}

/// The lock, held or cached. Dropping it passes it on.
pub(crate) struct Lock {
    /// Weak, because the world owns the lock while it is cached.
    world: Weak<World>,
    held: Option<Held>,
}

/// The lock, with the head of the queue it is handed off from.
pub(crate) struct Held {
    ahead: Option<Head>,
}

impl World {
    pub(crate) fn new(ends: Ends) -> Arc<Self> {
        Self::with(ends, Kind::GoesBack, "")
    }

    /// A world in which the tasks of `stay` hold the lock in this order, whichever other tasks hold
    /// it in between.
    pub(crate) fn expecting(ends: Ends, stay: &str) -> Arc<Self> {
        Self::with(ends, Kind::GoesBack, stay)
    }

    /// A world in which a released lock is cached.
    pub(crate) fn that_keeps(ends: Ends) -> Arc<Self> {
        Self::with(ends, Kind::IsKept, "")
    }

    /// A world in which the lock is the only permit. The tasks of `stay` hold it in any order,
    /// because waiters overtake a task that asks the store.
    pub(crate) fn of_a_permit(ends: Ends, stay: &str) -> Arc<Self> {
        Self::with(ends, Kind::IsPermit, stay)
    }

    fn with(ends: Ends, kind: Kind, stay: &str) -> Arc<Self> {
        Arc::new(Self {
            lines: WaitQueues::new(LIMITS),
            store: Mutex::new(Store::default()),
            inside: Inside::new(),
            log: Unseen::default(),
            kind,
            contended: Mutex::new(Wanted::default()),
            stay: stay.to_owned(),
            ends,
        })
    }

    /// The head of the queue, which has not asked yet.
    pub(crate) fn first(&self) -> Head {
        match self.lines.join(NAME, Wants { fits: true }, None) {
            Joined::Head(ahead, None) => ahead,
            Joined::Head(_, Some(_)) => panic!("no lock is cached yet"),
            Joined::Waiting(_) => panic!("no other task is queued"),
        }
    }

    /// A place behind the callers that are there, taken before any task runs.
    pub(crate) fn behind(&self, wants: Wants) -> Waiter {
        match self.lines.join(NAME, wants, None) {
            Joined::Head(..) => panic!("a head is queued"),
            Joined::Waiting(place) => place,
        }
    }

    /// Asks the store until it grants the lock.
    pub(crate) fn ask(self: &Arc<Self>, ahead: Head, contended: bool) -> Lock {
        let told = {
            let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            if mem::replace(&mut store.taken, true) {
                let (sender, told) = oneshot::channel();
                store.waiting.push_back(sender);
                Some(told)
            } else {
                None
            }
        };
        if let Some(told) = told {
            ahead.learned(());
            assert!(Waits::ForIt.wait(told).is_some_and(|told| told.is_ok()));
        }
        // Noted first: hand-offs from here on count anew.
        self.contended(|now| {
            *now = Wanted { known: contended, handed: 0, grants: now.grants + 1 };
        });
        self.log(|log| log.grants += 1);
        if self.kind == Kind::IsPermit {
            // The next waiter asks the store.
            drop(ahead);
            return Lock { world: Arc::downgrade(self), held: Some(Held { ahead: None }) };
        }
        ahead.granted(contended, (), NOW);
        self.lock(ahead)
    }

    fn lock(self: &Arc<Self>, ahead: Head) -> Lock {
        Lock { world: Arc::downgrade(self), held: Some(Held { ahead: Some(ahead) }) }
    }

    /// Uses what a waiter received.
    pub(crate) fn came(self: &Arc<Self>, who: char, came: Received<Wants, Lock>) {
        let lock = match came {
            Received::Lock(lock) => lock,
            Received::Probe(..) => unreachable!("no lock here is shared"),
            Received::Ask(ahead) => self.ask(ahead, false),
        };
        lock.used_by(who);
    }

    /// Returns the lock that was cached here; otherwise asks the store.
    pub(crate) fn revive_or_ask(self: &Arc<Self>, ahead: Head, kept: Option<Lock>) -> Lock {
        let Some(mut kept) = kept else { return self.ask(ahead, false) };
        // The cached lock must not be passed on when it is dropped.
        kept.held = None;
        self.lock(ahead)
    }

    /// Handles the message that another process waits, like the manager. The process then knows it,
    /// unless the store has granted the lock in between: the message may be about an earlier hold.
    pub(crate) fn told_that_it_is_wanted(&self, name: Option<&str>) {
        let before = self.contended(|now| now.grants);
        drop(self.lines.contended(name, NOW));
        self.contended(|now| {
            if now.grants == before {
                (now.known, now.handed) = (true, 0);
            }
        });
    }

    fn give_back(&self) {
        let told = {
            let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(store.taken, "released twice");
            self.log(|log| log.returns += 1);
            let told = store.waiting.pop_front();
            store.taken = told.is_some();
            told
        };
        if let Some(told) = told {
            assert!(told.send(()).is_ok());
        }
    }

    fn contended<R>(&self, note: impl FnOnce(&mut Wanted) -> R) -> R {
        note(&mut self.contended.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn log<R>(&self, note: impl FnOnce(&mut Log) -> R) -> R {
        note(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Lock {
    /// Does something under the lock, and releases it.
    pub(crate) fn used_by(self, who: char) {
        let world = self.world.upgrade().expect("there is a world");
        if world.contended(|now| now.known) {
            let ahead = self.held.as_ref().and_then(|held| held.ahead.as_ref());
            assert!(ahead.is_some_and(is_wanted), "forgotten that another process waits");
        }
        world.inside.alone(|| world.log(|log| log.had_it.push(who)));
    }
}

/// Returns whether the head's queue knows that another process waits.
pub(crate) fn is_wanted(ahead: &Head) -> bool {
    matches!(ahead.next(NOW, |_| false), Next::Store { contended: true })
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(world) = self.world.upgrade()
            && let Some(held) = self.held.take()
            && let Some(_left) = held.pass_on(&world)
        {
            world.give_back();
        }
    }
}

impl Held {
    /// Mirrors `HeldLease::pass_on` in `hold/guard/destination.rs`.
    fn pass_on(mut self, world: &Arc<World>) -> Option<Self> {
        if world.kind == Kind::IsPermit {
            return self.pass_past(world);
        }
        while let Some(ahead) = self.ahead.take() {
            let was_wanted = world.contended(|now| now.known);
            match ahead.next(NOW, |wants| wants.fits) {
                Next::Hand(waiter) => {
                    world.contended(|now| {
                        now.handed += u32::from(was_wanted);
                        assert!(now.handed <= LIMITS.count, "handed off too often");
                    });
                    assert!(waiter.wants().fits);
                    self.ahead = Some(ahead);
                    let lock = Lock { world: Arc::downgrade(world), held: Some(self) };
                    let Err(mut lock) = waiter.hand(lock) else { return None };
                    self = lock.held.take()?;
                }
                Next::Store { contended: true } => return Some(self),
                Next::Store { contended: false } => return self.cache(ahead, world),
            }
        }
        Some(self)
    }

    /// Mirrors the hand-off of a permit in `hold/guard/destination.rs`.
    fn pass_past(mut self, world: &Arc<World>) -> Option<Self> {
        while let Some(before) = world.lines.may_pass_head(NAME, NOW, |wants| wants.fits) {
            let pass = world.lines.pass(NAME, before, NOW, |wants| wants.fits);
            let Some(waiter) = pass else { return Some(self) };
            let lock = Lock { world: Arc::downgrade(world), held: Some(self) };
            let Err(mut lock) = waiter.hand(lock) else { return None };
            self = lock.held.take()?;
        }
        Some(self)
    }

    fn cache(self, ahead: Head, world: &Arc<World>) -> Option<Self> {
        if world.kind != Kind::IsKept {
            return Some(self);
        }
        let lock = Lock { world: Arc::downgrade(world), held: Some(self) };
        ahead.cache(lock, NOW).err().and_then(|mut lock| lock.held.take())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for kept in self.lines.take_cached(None) {
            assert!(!self.contended(|now| now.known), "cached though another process waits");
            // Its drop must not find this world.
            drop(kept);
            self.give_back();
        }
        self.log(|log| assert_eq!(log.grants, log.returns, "granted as often as released"));
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!store.taken && store.waiting.is_empty(), "the lock is lost");
        assert!(self.lines.try_join(NAME).is_some(), "an empty queue is left");
        let mut had_it: Vec<char> =
            self.log(|log| log.had_it.chars().filter(|who| self.stay.contains(*who)).collect());
        if self.kind == Kind::IsPermit {
            had_it.sort_unstable();
        }
        assert_eq!(had_it, Vec::from_iter(self.stay.chars()), "in the order of their places");
        self.ends.one_more();
    }
}
