//! A lock in a store, and who has it: `guard/held.rs` with everything left out but who learns what
//! in which order.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Mutex as Unseen, Weak};
use std::time::Duration;

use crate::explore::{Ends, Waits};
use crate::inside::Inside;
use crate::sync::{Arc, Instant, Mutex, PoisonError, oneshot};
use crate::wait_queue::{self, Joined, Limits, Next, Received};

pub(crate) const NAME: &str = "the one lock";

/// It is always the same time, but where a model says that it is later.
pub(crate) const NOW: Instant = Instant(Duration::from_secs(100));

pub(crate) const LIMITS: Limits = Limits { count: 1, time: Duration::from_secs(1) };

/// Whether the lock may be handed to a waiter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wants {
    pub(crate) fits: bool,
}

pub(crate) type WaitQueues = wait_queue::WaitQueues<Wants, Lock>;
pub(crate) type Head = wait_queue::Head<Wants, Lock>;
pub(crate) type Waiter = wait_queue::Waiter<Wants, Lock>;

/// What all tasks of one run share. When the last of them is gone, it is checked that nothing is
/// left anywhere.
pub(crate) struct World {
    pub(crate) lines: Arc<WaitQueues>,
    store: Mutex<Store>,
    inside: Inside,
    /// No process decides by this, so looking at it is no step.
    log: Unseen<Log>,
    kind: Kind,
    contended: Mutex<Wanted>,
    stay: String,
    ends: Ends,
}

/// What becomes of the lock when its holder lets go of it, if no process waits or may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It goes back to the store.
    GoesBack,
    /// It is kept for who comes next.
    IsKept,
    /// It goes past the head, which asks the store.
    IsPermit,
}

/// The lock as the store has it. A caller that asks while it is taken is notified later.
#[derive(Default)]
struct Store {
    taken: bool,
    waiting: VecDeque<oneshot::Sender<()>>,
}

#[derive(Default)]
struct Log {
    /// In the order in which they had the lock.
    had_it: String,
    grants: u32,
    returns: u32,
}

/// Whether it is known here that another process waits, and how often the lock was handed off
/// since that is known and the store last granted it.
#[derive(Default)]
struct Wanted {
    known: bool,
    handed: u32,
    /// How often the store has granted the lock.
    grants: u32,
}

/// The lock in somebody's hand, or kept; dropped, it is passed on.
pub(crate) struct Lock {
    /// Not forever, because the world has it while it is kept.
    world: Weak<World>,
    held: Option<Held>,
}

/// The lock itself, with the place from which it is handed off.
pub(crate) struct Held {
    ahead: Option<Head>,
}

impl World {
    pub(crate) fn new(ends: Ends) -> Arc<Self> {
        Self::with(ends, Kind::GoesBack, "")
    }

    /// One in which these have the lock, in this order, whichever process else may have it in between.
    pub(crate) fn expecting(ends: Ends, stay: &str) -> Arc<Self> {
        Self::with(ends, Kind::GoesBack, stay)
    }

    /// One in which a lock is kept.
    pub(crate) fn that_keeps(ends: Ends) -> Arc<Self> {
        Self::with(ends, Kind::IsKept, "")
    }

    /// One in which the lock is the only permit, and these have it, in any order: one that asks is overtaken.
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

    /// Somebody who has the place in front, and nothing else yet.
    pub(crate) fn first(&self) -> Head {
        match self.lines.join(NAME, Wants { fits: true }, None) {
            Joined::Head(ahead, None) => ahead,
            Joined::Head(_, Some(_)) => panic!("nothing is kept yet"),
            Joined::Waiting(_) => panic!("nobody else is there"),
        }
    }

    /// The place behind those who are there, before any task runs.
    pub(crate) fn behind(&self, wants: Wants) -> Waiter {
        match self.lines.join(NAME, wants, None) {
            Joined::Head(..) => panic!("there is one ahead"),
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
        // Noted before: what is handed off from here on counts anew.
        self.contended(|now| {
            *now = Wanted { known: contended, handed: 0, grants: now.grants + 1 };
        });
        self.log(|log| log.grants += 1);
        if self.kind == Kind::IsPermit {
            // The next one asks.
            drop(ahead);
            return Lock { world: Arc::downgrade(self), held: Some(Held { ahead: None }) };
        }
        ahead.granted(contended, (), NOW);
        self.lock(ahead)
    }

    fn lock(self: &Arc<Self>, ahead: Head) -> Lock {
        Lock { world: Arc::downgrade(self), held: Some(Held { ahead: Some(ahead) }) }
    }

    /// What follows when somebody's turn has come.
    pub(crate) fn came(self: &Arc<Self>, who: char, came: Received<Wants, Lock>) {
        let lock = match came {
            Received::Lock(lock) => lock,
            Received::Probe(..) => unreachable!("no lock here is shared"),
            Received::Ask(ahead) => self.ask(ahead, false),
        };
        lock.used_by(who);
    }

    /// The lock that was kept here, or else the store's.
    pub(crate) fn revive_or_ask(self: &Arc<Self>, ahead: Head, kept: Option<Lock>) -> Lock {
        let Some(mut kept) = kept else { return self.ask(ahead, false) };
        // What it was is nothing to be passed on.
        kept.held = None;
        self.lock(ahead)
    }

    /// The message that another process waits, as the manager deals with it. Then it is known,
    /// unless the store has granted the lock in between: it may be about an earlier hold.
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
            assert!(store.taken, "given back twice");
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
    /// Does something under the lock, and lets go of it.
    pub(crate) fn used_by(self, who: char) {
        let world = self.world.upgrade().expect("there is a world");
        if world.contended(|now| now.known) {
            let ahead = self.held.as_ref().and_then(|held| held.ahead.as_ref());
            assert!(ahead.is_some_and(is_wanted), "forgotten that another process waits");
        }
        world.inside.alone(|| world.log(|log| log.had_it.push(who)));
    }
}

/// Whether it is known in its line that another process waits.
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
    /// As `guard/held.rs` has it.
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
                        assert!(now.handed <= LIMITS.count, "handed over too often");
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

    /// As `guard/way.rs` has it of a permit.
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
            assert!(!self.contended(|now| now.known), "kept though another process waits");
            // It would look for this world.
            drop(kept);
            self.give_back();
        }
        self.log(|log| assert_eq!(log.grants, log.returns, "granted as often as given back"));
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!store.taken && store.waiting.is_empty(), "the lock is lost");
        assert!(self.lines.try_join(NAME).is_some(), "a line is left that nobody stands in");
        let mut had_it: Vec<char> =
            self.log(|log| log.had_it.chars().filter(|who| self.stay.contains(*who)).collect());
        if self.kind == Kind::IsPermit {
            had_it.sort_unstable();
        }
        assert_eq!(had_it, Vec::from_iter(self.stay.chars()), "in the order of their places");
        self.ends.one_more();
    }
}
