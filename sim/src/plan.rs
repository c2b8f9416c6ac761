//! What a seed says: who there is, and what goes wrong and when.

mod scene;

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::turn::{LONGEST_TTL, Part};

/// The servers of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One.
    Alone,
    /// Five that know nothing of one another, asked by Redlock.
    Redlock,
}

/// The plot of a world that is not all chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// The process of waiters dies, stands still or is cut off.
    WaitersLeave,
    /// Many waiters have waited long enough in the same moment.
    ACrowdGivesUp,
    /// Callers are dropped in the moment in which the lock is handed to them.
    CallersAreDropped,
}

/// One world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What all of it comes from.
    pub seed: u64,
    /// Its plot, if it has one.
    pub scene: Option<Scene>,
    /// Its servers.
    pub topology: Topology,
    /// Its processes, and how each is set up.
    pub processes: Vec<Setup>,
    /// By how many thousandths each server's clock runs too fast.
    pub fast: Vec<i32>,
    /// How long a message takes at most, while nothing is wrong.
    pub latency: Duration,
    /// How long a process waits for an answer.
    pub response: Duration,
    /// How long a server is busy with each question.
    pub server_takes: Duration,
    /// How long the processes begin new work.
    pub works: Duration,
    /// How long a lock may stay out of reach of those who live, after the last thing that went wrong.
    pub bound: Duration,
    /// What goes wrong, in order.
    pub faults: Vec<Fault>,
}

/// How a process is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its tasks.
    pub tasks: u32,
    /// What its first life does beside them.
    pub(crate) parts: Vec<Part>,
    /// `linger` of its manager.
    pub linger: Duration,
    /// `hand_overs` of its manager.
    pub hand_overs: u32,
    /// `hand_over_time` of its manager.
    pub hand_over_time: Duration,
    /// By how many microseconds its calendar is ahead.
    pub ahead: i64,
    /// Whether it ends by a shutdown, and not by dropping its manager.
    pub shuts_down: bool,
}

/// Something that goes wrong for a while.
#[derive(Clone, Debug)]
pub struct Fault {
    /// When it begins.
    pub at: Duration,
    /// When it is over.
    pub until: Duration,
    /// What it is.
    pub trouble: Trouble,
}

/// What goes wrong. Processes and servers by number.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// Nothing passes between a process and these servers: it is lost.
    Partition(usize, Vec<usize>),
    /// Nothing passes to them.
    PartitionThere(usize, Vec<usize>),
    /// Nothing passes back from them.
    PartitionBack(usize, Vec<usize>),
    /// Nothing passes, and all of it comes when this is over.
    Hold(usize, Vec<usize>),
    /// What passes is slow.
    Slow(usize, Vec<usize>, Duration),
    /// The process dies, and another begins in its place when this is over.
    Kill(usize),
    /// The process stands still, and goes on where it was.
    Pause(usize),
    /// The server's process dies, and comes back with its data.
    PowerOff(usize),
    /// The process's calendar is ahead by so many microseconds more.
    Calendar(usize, i64),
}

/// Kinds of trouble, as figures name them.
pub const KINDS: [&str; 9] = [
    "partition",
    "partition there",
    "partition back",
    "messages held",
    "slow link",
    "process killed",
    "server restarted",
    "calendar jump",
    "process stopped",
];

impl Trouble {
    /// Whether it keeps this process from its work or its servers.
    pub(crate) fn befalls(&self, process: usize) -> bool {
        match self {
            Self::Partition(which, _)
            | Self::PartitionThere(which, _)
            | Self::PartitionBack(which, _)
            | Self::Hold(which, _)
            | Self::Slow(which, ..)
            | Self::Kill(which)
            | Self::Pause(which) => *which == process,
            Self::PowerOff(_) => true,
            Self::Calendar(..) => false,
        }
    }

    /// Its place in [`KINDS`].
    #[must_use]
    pub fn kind(&self) -> usize {
        match self {
            Self::Partition(..) => 0,
            Self::PartitionThere(..) => 1,
            Self::PartitionBack(..) => 2,
            Self::Hold(..) => 3,
            Self::Slow(..) => 4,
            Self::Kill(..) => 5,
            Self::PowerOff(..) => 6,
            Self::Calendar(..) => 7,
            Self::Pause(..) => 8,
        }
    }
}

impl Plan {
    /// What this seed says of these servers.
    #[must_use]
    pub fn draw(seed: u64, topology: Topology) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let servers = match topology {
            Topology::Alone => 1,
            Topology::Redlock => 5,
        };
        let works = Duration::from_millis(dice.random_range(2_000..5_000));
        let processes: Vec<_> =
            (0..dice.random_range(2..=3)).map(|_| Setup::draw(&mut dice)).collect();
        let mut plan = Self {
            seed,
            scene: None,
            topology,
            fast: (0..servers).map(|_| dice.random_range(-8..=8)).collect(),
            latency: Duration::from_millis(dice.random_range(2..=30)),
            response: Duration::from_millis(300),
            server_takes: Duration::ZERO,
            works,
            bound: scene::bound(LONGEST_TTL),
            faults: Vec::new(),
            processes,
        };
        let mut faults = plan.draw_faults(&mut dice);
        faults.sort_by_key(|fault| fault.at);
        plan.faults = faults;
        plan
    }

    /// How a report calls it.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { seed, scene, topology, .. } = self;
        match scene {
            Some(scene) => {
                let faults: Vec<_> = self.faults.iter().map(|fault| &fault.trouble).collect();
                format!("scene {seed} ({scene:?}, {faults:?})")
            }
            None => format!("seed {seed} over {topology:?}"),
        }
    }

    fn draw_faults(&self, dice: &mut StdRng) -> Vec<Fault> {
        let (processes, servers) = (self.processes.len(), self.fast.len());
        // Two faults of one link, or of one host, are none that a network knows.
        let mut busy: HashMap<String, Duration> = HashMap::new();
        let mut faults = Vec::new();
        let mut at = Duration::from_millis(dice.random_range(100..600));
        while at < self.works {
            let until = at + Duration::from_millis(dice.random_range(30..2_500));
            let process = dice.random_range(0..processes);
            let mut some: Vec<_> = (0..servers).collect();
            some.shuffle(dice);
            some.truncate(dice.random_range(1..=servers));
            let (one, kind) = (some[0], dice.random_range(0..KINDS.len()));
            let trouble = match kind {
                0 => Trouble::Partition(process, some.clone()),
                1 => Trouble::PartitionThere(process, some.clone()),
                2 => Trouble::PartitionBack(process, some.clone()),
                3 => Trouble::Hold(process, some.clone()),
                4 => {
                    let slow = Duration::from_millis(dice.random_range(50..800));
                    Trouble::Slow(process, some.clone(), slow)
                }
                5 => Trouble::Kill(process),
                6 => Trouble::PowerOff(one),
                7 => Trouble::Calendar(process, dice.random_range(-400_000..400_000)),
                _ => Trouble::Pause(process),
            };
            let takes: Vec<_> = match kind {
                0..=4 => some.iter().map(|server| format!("{process}-{server}")).collect(),
                5 | 8 => vec![format!("process {process}")],
                6 => vec![format!("server {one}")],
                _ => Vec::new(),
            };
            if takes.iter().all(|what| busy.get(what).is_none_or(|until| *until < at)) {
                // A step later, or the end of one would be the beginning of the next.
                let free = until + Duration::from_millis(20);
                busy.extend(takes.into_iter().map(|what| (what, free)));
                faults.push(Fault { at, until, trouble });
            }
            at += Duration::from_millis(dice.random_range(20..900));
        }
        faults
    }
}

impl Setup {
    fn draw(dice: &mut StdRng) -> Self {
        let linger = if dice.random_bool(0.3) { dice.random_range(20..500) } else { 0 };
        Self {
            tasks: dice.random_range(2..=4),
            parts: Vec::new(),
            linger: Duration::from_millis(linger),
            hand_overs: dice.random_range(0..8),
            hand_over_time: Duration::from_millis(dice.random_range(1..200)),
            ahead: dice.random_range(-400_000..400_000),
            shuts_down: dice.random_bool(0.5),
        }
    }
}
