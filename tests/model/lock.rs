//! A model of a lock in a store and of its holder: `hold/guard/destination.rs`, reduced to the
//! order of the hand-offs.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Mutex as Unseen, Weak};
use std::time::Duration;

use crate::explore::{Ends, Waits};
use crate::inside::Inside;
use crate::sync::{Arc, Instant, Mutex, oneshot};
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
    pub(crate) queues: Arc<WaitQueues>,
    store: Mutex<Store>,
    inside: Inside,
    /// No task decides by this, so reading it is not a step.
    log: Unseen<Log>,
    kind: Kind,
    contended: Mutex<Contention>,
    expected: String,
    ends: Ends,
}

/// What happens to a released lock that no waiter here gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It is released to the store.
    Released,
    /// It is cached for the next caller.
    Cached,
    /// It bypasses the head, which asks the store.
    Permit,
}

/// The lock in the store. A caller that asks while it is held is notified later.
#[derive(Default)]
struct Store {
    is_held: bool,
    waiting: VecDeque<oneshot::Sender<()>>,
}

#[derive(Default)]
struct Log {
    /// The holders, in order.
    holders: String,
    grants: u32,
    releases: u32,
}

/// Whether this process knows that another process waits, and how often the lock was handed off
/// since it knows and since the store last granted the lock.
#[derive(Default)]
struct Contention {
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
    head: Option<Head>,
}

impl World {
    pub(crate) fn new(ends: Ends) -> Arc<Self> {
        Self::with(ends, Kind::Released, "")
    }

    /// A world in which the tasks of `expected` hold the lock in this order, whichever other tasks hold
    /// it in between.
    pub(crate) fn expecting(ends: Ends, expected: &str) -> Arc<Self> {
        Self::with(ends, Kind::Released, expected)
    }

    /// A world in which a released lock is cached.
    pub(crate) fn that_caches(ends: Ends) -> Arc<Self> {
        Self::with(ends, Kind::Cached, "")
    }

    /// A world in which the lock is the only permit. The tasks of `expected` hold it in any order,
    /// because waiters overtake a task that asks the store.
    pub(crate) fn of_a_permit(ends: Ends, expected: &str) -> Arc<Self> {
        Self::with(ends, Kind::Permit, expected)
    }

    fn with(ends: Ends, kind: Kind, expected: &str) -> Arc<Self> {
        Arc::new(Self {
            queues: WaitQueues::new(LIMITS),
            store: Mutex::new(Store::default()),
            inside: Inside::new(),
            log: Unseen::default(),
            kind,
            contended: Mutex::new(Contention::default()),
            expected: expected.to_owned(),
            ends,
        })
    }

    /// The head of the queue, which has not asked yet.
    pub(crate) fn first(&self) -> Head {
        match self.queues.join(NAME, Wants { fits: true }, None) {
            Joined::Head(head, None) => head,
            Joined::Head(_, Some(_)) => panic!("no lock is cached yet"),
            Joined::Waiting(_) => panic!("no other task is queued"),
        }
    }

    /// A place behind the callers that are there, taken before any task runs.
    pub(crate) fn behind(&self, wants: Wants) -> Waiter {
        match self.queues.join(NAME, wants, None) {
            Joined::Head(..) => panic!("a head is queued"),
            Joined::Waiting(waiter) => waiter,
        }
    }

    /// Asks the store until it grants the lock.
    pub(crate) fn acquire(self: &Arc<Self>, head: Head, contended: bool) -> Lock {
        let notification = {
            let mut store = self.store.lock();
            if mem::replace(&mut store.is_held, true) {
                let (sender, notification) = oneshot::channel();
                store.waiting.push_back(sender);
                Some(notification)
            } else {
                None
            }
        };
        if let Some(notification) = notification {
            head.learned(());
            assert!(
                Waits::ForIt.wait(notification).is_some_and(|notification| notification.is_ok())
            );
        }
        // Noted first: hand-offs from here on count anew.
        self.contended(|now| {
            *now = Contention { known: contended, handed: 0, grants: now.grants + 1 };
        });
        self.log(|log| log.grants += 1);
        if self.kind == Kind::Permit {
            // The next waiter asks the store.
            drop(head);
            return Lock { world: Arc::downgrade(self), held: Some(Held { head: None }) };
        }
        head.granted(contended, (), NOW);
        self.lock(head)
    }

    fn lock(self: &Arc<Self>, head: Head) -> Lock {
        Lock { world: Arc::downgrade(self), held: Some(Held { head: Some(head) }) }
    }

    /// Uses what a waiter received.
    pub(crate) fn received(self: &Arc<Self>, caller: char, received: Received<Wants, Lock>) {
        let lock = match received {
            Received::Lock(lock) => lock,
            Received::Probe(..) => unreachable!("no lock here is shared"),
            Received::Head(head) => self.acquire(head, false),
        };
        lock.used_by(caller);
    }

    /// Returns the lock that was cached here; otherwise asks the store.
    pub(crate) fn reuse_or_acquire(self: &Arc<Self>, head: Head, cached: Option<Lock>) -> Lock {
        let Some(mut cached) = cached else { return self.acquire(head, false) };
        // The cached lock must not be passed on when it is dropped.
        cached.held = None;
        self.lock(head)
    }

    /// Handles the message that another process waits, like the manager. The process then knows it,
    /// unless the store has granted the lock in between: the message may be about an earlier hold.
    pub(crate) fn receive_contention(&self, name: Option<&str>) {
        let before = self.contended(|now| now.grants);
        drop(self.queues.contended(name, NOW));
        self.contended(|now| {
            if now.grants == before {
                (now.known, now.handed) = (true, 0);
            }
        });
    }

    fn release(&self) {
        let notification = {
            let mut store = self.store.lock();
            assert!(store.is_held, "released twice");
            self.log(|log| log.releases += 1);
            let notification = store.waiting.pop_front();
            store.is_held = notification.is_some();
            notification
        };
        if let Some(notification) = notification {
            assert!(notification.send(()).is_ok());
        }
    }

    fn contended<R>(&self, note: impl FnOnce(&mut Contention) -> R) -> R {
        note(&mut self.contended.lock())
    }

    fn log<R>(&self, note: impl FnOnce(&mut Log) -> R) -> R {
        note(&mut self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Lock {
    /// Does something under the lock, and releases it.
    pub(crate) fn used_by(self, caller: char) {
        let world = self.world.upgrade().expect("there is a world");
        if world.contended(|now| now.known) {
            let head = self.held.as_ref().and_then(|held| held.head.as_ref());
            assert!(head.is_some_and(is_contended), "forgotten that another process waits");
        }
        world.inside.alone(|| world.log(|log| log.holders.push(caller)));
    }
}

/// Returns whether the head's queue knows that another process waits.
pub(crate) fn is_contended(head: &Head) -> bool {
    matches!(head.next(NOW, |_| false), Next::Store { contended: true })
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(world) = self.world.upgrade()
            && let Some(held) = self.held.take()
            && let Some(_left) = held.pass_on(&world)
        {
            world.release();
        }
    }
}

impl Held {
    /// Mirrors `HeldLease::pass_on` in `hold/guard/destination.rs`.
    fn pass_on(mut self, world: &Arc<World>) -> Option<Self> {
        if world.kind == Kind::Permit {
            return self.pass_head(world);
        }
        while let Some(head) = self.head.take() {
            let was_contended = world.contended(|now| now.known);
            match head.next(NOW, |wants| wants.fits) {
                Next::Waiter(waiter) => {
                    world.contended(|now| {
                        now.handed += u32::from(was_contended);
                        assert!(now.handed <= LIMITS.count, "handed off too often");
                    });
                    assert!(waiter.wants().fits);
                    self.head = Some(head);
                    let lock = Lock { world: Arc::downgrade(world), held: Some(self) };
                    let Err(mut lock) = waiter.hand_off(lock) else { return None };
                    self = lock.held.take()?;
                }
                Next::Store { contended: true } => return Some(self),
                Next::Store { contended: false } => return self.cache(head, world),
            }
        }
        Some(self)
    }

    /// Mirrors the hand-off of a permit in `hold/guard/destination.rs`.
    fn pass_head(mut self, world: &Arc<World>) -> Option<Self> {
        while let Some(before) = world.queues.may_bypass_head(NAME, NOW, |wants| wants.fits) {
            let pass = world.queues.bypass_head(NAME, before, NOW, |wants| wants.fits);
            let Some(waiter) = pass else { return Some(self) };
            let lock = Lock { world: Arc::downgrade(world), held: Some(self) };
            let Err(mut lock) = waiter.hand_off(lock) else { return None };
            self = lock.held.take()?;
        }
        Some(self)
    }

    fn cache(self, head: Head, world: &Arc<World>) -> Option<Self> {
        if world.kind != Kind::Cached {
            return Some(self);
        }
        let lock = Lock { world: Arc::downgrade(world), held: Some(self) };
        head.cache(lock, NOW).err().and_then(|mut lock| lock.held.take())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for cached in self.queues.take_cached(None) {
            assert!(!self.contended(|now| now.known), "cached though another process waits");
            // Its drop must not find this world.
            drop(cached);
            self.release();
        }
        self.log(|log| assert_eq!(log.grants, log.releases, "granted as often as released"));
        let store = self.store.lock();
        assert!(!store.is_held && store.waiting.is_empty(), "the lock is lost");
        assert!(self.queues.try_join(NAME).is_some(), "an empty queue is left");
        let mut holders: Vec<char> = self.log(|log| {
            log.holders.chars().filter(|caller| self.expected.contains(*caller)).collect()
        });
        if self.kind == Kind::Permit {
            holders.sort_unstable();
        }
        assert_eq!(holders, Vec::from_iter(self.expected.chars()), "in the order of their places");
        self.ends.one_more();
    }
}
