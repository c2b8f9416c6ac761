//! Worlds with a scene: waiters die, pause, are cut off, give up or are dropped while others wait
//! for the same lock.
//!
//! Which caller requests what is random too, but such ends are far more frequent than in a random
//! world.

use std::time::Duration;

use lockattr_history::Mode;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Fault, Plan, Scene, Setup, Topology, Trouble};
use crate::turn::{End, PERMITS, Part, Step, Turn};

/// The keys and the mode of a lock in a scene.
type Lock = (Vec<&'static str>, Mode);

/// The places of the processes.
const HOLDER: usize = 0;
const LEAVER: usize = 1;
const LIVING: usize = 2;
const NEXT: usize = 3;

/// The wait budget of waiters that must acquire the lock.
const PATIENT: Duration = Duration::from_secs(14);

/// A time after the end of a scene.
const OVER: Duration = Duration::from_secs(15);

impl Plan {
    /// Draws the scene of this seed, with one server.
    #[must_use]
    pub fn scene(seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed ^ 0x7363_656e_6521);
        let scene = match dice.random_range(0..10) {
            0..7 => Scene::WaitersLeave,
            7 => Scene::ACrowdGivesUp,
            _ => Scene::CallersAreDropped,
        };
        let mut plan = Self {
            seed,
            scene: Some(scene),
            topology: Topology::Alone,
            processes: vec![Setup::plain(); 4],
            fast: vec![dice.random_range(-8..=8)],
            latency: ms(dice.random_range(2..=30)),
            response: ms(300),
            service_time: Duration::ZERO,
            works_until: Duration::ZERO,
            bound: Duration::ZERO,
            faults: Vec::new(),
        };
        match scene {
            Scene::WaitersLeave => plan.waiters_leave(&mut dice),
            Scene::ACrowdGivesUp => plan.a_crowd_gives_up(&mut dice),
            Scene::CallersAreDropped => plan.callers_are_dropped(&mut dice),
        }
        plan.faults.sort_by_key(|fault| fault.at);
        plan
    }

    /// While a lock is held, a process with waiters dies, pauses or is cut off; another process
    /// waits behind them. The next holder may die, too.
    fn waiters_leave(&mut self, dice: &mut StdRng) {
        let ttl = ms([300, 600, 1_000, 1_500][dice.random_range(0..4)]);
        let release_at = ms(dice.random_range(1_500..4_000));
        let [page, a, b] = [&["page"][..], &["stock:a"], &["stock:b"]].map(<[_]>::to_vec);
        let both = || vec!["stock:a", "stock:b"];
        let door = || (vec!["door"], Mode::Permits(PERMITS));
        let alone = |keys| (keys, Mode::Exclusive);
        let (held, left, waited, stays): (Lock, Lock, Lock, bool) = match dice.random_range(0..6) {
            0 => (alone(a.clone()), alone(a.clone()), alone(a), false),
            1 | 2 => (door(), door(), door(), false),
            3 => ((page.clone(), Mode::Shared), alone(page.clone()), (page, Mode::Shared), true),
            4 => (alone(b), alone(both()), alone(a), true),
            _ => (alone(b.clone()), alone(both()), alone(b), false),
        };
        let holders = if let Mode::Permits(permits) = held.1 { permits } else { 1 };
        let lease = if dice.random_bool(0.4) { ms(20_000) } else { ttl };
        for _ in 0..holders {
            let body_time = if stays { OVER } else { release_at };
            self.add_turn(HOLDER, ms(0), Turn::plain(held.clone(), lease, ms(500), body_time));
        }
        if held.1 == Mode::Exclusive && !stays && dice.random_bool(0.5) {
            // The first in the wait queue. It holds the lock when it is killed.
            self.add_turn(NEXT, ms(120), Turn::plain(held, ttl, PATIENT, ms(1_000)));
            let at = release_at + ms(dice.random_range(100..900));
            self.add_fault(Trouble::Kill(NEXT), at, OVER);
        }
        let begins = ms(dice.random_range(800..1_200));
        let cut = dice.random_bool(0.5);
        for _ in 0..dice.random_range(1..=8) {
            let at = ms(dice.random_range(200..400));
            // Waiters of a process that is cut off may give up meanwhile.
            let gives_up = cut && dice.random_bool(0.8);
            let wait = if gives_up { begins + ms(dice.random_range(0..600)) } else { OVER };
            self.add_turn(LEAVER, at, Turn::plain(left.clone(), ttl, wait, ms(20)));
        }
        let trouble = match (cut, dice.random_range(0..3)) {
            (true, 0) => Trouble::PartitionThere(LEAVER, vec![0]),
            (true, 1) => Trouble::PartitionBack(LEAVER, vec![0]),
            (true, _) => Trouble::Partition(LEAVER, vec![0]),
            (false, 0) => Trouble::Kill(LEAVER),
            (false, _) => Trouble::Pause(LEAVER),
        };
        self.add_fault(trouble, begins, ms(dice.random_range(600..9_000)));
        for _ in 0..dice.random_range(1..=2) {
            let at = ms(dice.random_range(450..1_400));
            self.add_turn(LIVING, at, Turn::plain(waited.clone(), ttl, PATIENT, ms(20)));
        }
        self.bound = bound(ttl);
    }

    /// Many callers of one process wait for a lock that stays held, and their wait budgets end at
    /// the same moment.
    fn a_crowd_gives_up(&mut self, dice: &mut StdRng) {
        let (many, ttl, ends) = (dice.random_range(300..450), ms(1_500), ms(3_000));
        self.service_time = ms(1);
        self.response = ms(2_000);
        let (lock, holders) = match dice.random_bool(0.5) {
            true => ((vec!["stock:a"], Mode::Exclusive), 1),
            false => ((vec!["door"], Mode::Permits(PERMITS)), PERMITS),
        };
        for _ in 0..holders {
            self.add_turn(HOLDER, ms(0), Turn::plain(lock.clone(), ttl, ms(500), ends * 2));
        }
        for _ in 0..many {
            let at = ms(dice.random_range(200..1_200));
            self.add_turn(LEAVER, at, Turn::plain(lock.clone(), ttl, ends - at, ms(20)));
        }
        self.bound = bound(ttl);
    }

    /// Callers that wait in the holder's process are dropped at the moment at which the lock is
    /// handed to them, like the losers of a `select!`. Each would have kept the lock for a while.
    fn callers_are_dropped(&mut self, dice: &mut StdRng) {
        let (ttl, at_least) = (ms(600), ms(8_000));
        let release_at = ms(dice.random_range(500..1_500));
        let lock = || (vec!["stock:a"], Mode::Exclusive);
        let rival = Turn::plain(lock(), ttl, PATIENT, ms(20)).at_least(at_least);
        let turn = Turn::plain(lock(), ttl, ms(500), release_at);
        let rivals = vec![rival; dice.random_range(1..=4)];
        self.processes[HOLDER].parts.push(Part { at: ms(0), turn, rivals });
        let living = Turn::plain(lock(), ttl, PATIENT, ms(20));
        self.add_turn(LIVING, release_at + ms(dice.random_range(0..600)) - ms(300), living);
        self.bound = bound(ttl);
    }

    fn add_turn(&mut self, process: usize, at: Duration, turn: Turn) {
        self.processes[process].parts.push(Part { at, turn, rivals: Vec::new() });
    }

    fn add_fault(&mut self, trouble: Trouble, at: Duration, lasts: Duration) {
        self.faults.push(Fault { at, until: at + lasts, trouble });
    }
}

impl Setup {
    /// A process with default settings and no random tasks.
    pub(super) fn plain() -> Self {
        Self {
            tasks: 0,
            parts: Vec::new(),
            campaigns: Vec::new(),
            linger: Duration::ZERO,
            max_handoffs: 8,
            max_handoff_time: Duration::from_secs(10),
            ahead: 0,
            shutdown_at_end: false,
        }
    }
}

impl Turn {
    /// Acquires this lock, works under it and releases it.
    fn plain((keys, mode): Lock, ttl: Duration, wait: Duration, body_time: Duration) -> Self {
        let options = Self::options(mode, ttl).wait(wait);
        let (steps, end) = (vec![Step::Work(body_time)], End::Released);
        let at_least = Duration::ZERO;
        Self { keys, mode, options, wait: Some(wait), steps, end, at_least, cancelled: None }
    }

    fn at_least(self, at_least: Duration) -> Self {
        Self { options: self.options.hold_at_least(at_least), at_least, ..self }
    }
}

/// What the waiters of a dead process may cost: a place in the queue that is not renewed, then a
/// lease granted just before the place lapses, and a second for messages on their way.
pub(super) fn bound(ttl: Duration) -> Duration {
    ttl.max(Duration::from_secs(1)) + ttl + Duration::from_secs(1)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
