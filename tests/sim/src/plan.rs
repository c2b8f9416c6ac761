//! The plan of a world, determined by its seed: the processes and servers, and what goes wrong and
//! when.

mod drawn;
mod leaders;
mod scene;

use std::collections::BTreeSet;
use std::time::Duration;

use lockattr::store::LockKey;

use crate::campaign::Campaign;
use crate::turn::{KEYS, Part};

/// The servers of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One.
    Alone,
    /// Five independent ones, used by Redlock.
    Redlock,
}

/// A script for a world that is not entirely random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// A process with waiters dies, pauses or is cut off.
    WaitersLeave,
    /// The wait budgets of many waiters end at the same moment.
    ACrowdGivesUp,
    /// Callers are dropped at the moment at which the lock is handed to them.
    CallersAreDropped,
}

/// One world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed that determines everything.
    pub seed: u64,
    /// Its scene, if it has one.
    pub scene: Option<Scene>,
    /// Its servers.
    pub topology: Topology,
    /// The setup of each process.
    pub processes: Vec<Setup>,
    /// How much too fast each server's clock runs, in thousandths.
    pub fast: Vec<i32>,
    /// The most that a message takes while nothing is wrong.
    pub latency: Duration,
    /// How long a process waits for a reply.
    pub response: Duration,
    /// How long a server is busy with each request.
    pub service_time: Duration,
    /// Until when the processes begin new work.
    pub works_until: Duration,
    /// How long a lock may be out of reach for living processes after the last fault.
    pub bound: Duration,
    /// The faults, in order.
    pub faults: Vec<Fault>,
}

/// The setup of a process.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The number of its tasks.
    pub tasks: u32,
    /// What its first life does besides.
    pub(crate) parts: Vec<Part>,
    /// The campaigns of its leaders, which no scripted or random world has.
    pub(crate) campaigns: Vec<Campaign>,
    /// `linger` of its manager.
    pub linger: Duration,
    /// `max_handoffs` of its manager.
    pub max_handoffs: u32,
    /// `max_handoff_time` of its manager.
    pub max_handoff_time: Duration,
    /// How many microseconds its calendar is ahead.
    pub ahead: i64,
    /// Whether it ends with a shutdown instead of dropping its manager.
    pub shutdown_at_end: bool,
}

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When it begins.
    pub at: Duration,
    /// When it ends.
    pub until: Duration,
    /// What goes wrong.
    pub trouble: Trouble,
}

/// A kind of fault, with the numbers of the processes and servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Messages between a process and these servers are lost.
    Partition(usize, Vec<usize>),
    /// Messages to these servers are lost.
    PartitionThere(usize, Vec<usize>),
    /// Messages from these servers are lost.
    PartitionBack(usize, Vec<usize>),
    /// Messages are held back, and arrive when this is over.
    Hold(usize, Vec<usize>),
    /// Messages are slow.
    Slow(usize, Vec<usize>, Duration),
    /// The process dies, and another replaces it when this is over.
    Kill(usize),
    /// The process is paused, and then continues.
    Pause(usize),
    /// The server's process dies, and comes back with its data.
    PowerOff(usize),
    /// The process's calendar jumps ahead by this many microseconds.
    Calendar(usize, i64),
    /// The server's calendar jumps ahead by this many microseconds.
    ServerCalendar(usize, i64),
}

/// The kinds of faults, as figures name them.
pub const KINDS: [&str; 10] = [
    "partition",
    "partition there",
    "partition back",
    "messages held",
    "slow link",
    "process killed",
    "server restarted",
    "calendar jump",
    "process stopped",
    "server calendar jump",
];

impl Trouble {
    /// Returns whether it keeps this process from its work or its servers.
    pub(crate) fn affects(&self, process: usize) -> bool {
        match self {
            Self::Partition(which, _)
            | Self::PartitionThere(which, _)
            | Self::PartitionBack(which, _)
            | Self::Hold(which, _)
            | Self::Slow(which, ..)
            | Self::Kill(which)
            | Self::Pause(which) => *which == process,
            Self::PowerOff(_) => true,
            Self::Calendar(..) | Self::ServerCalendar(..) => false,
        }
    }

    /// Returns whether it concerns only a calendar, on which nothing may depend.
    pub(crate) fn is_of_a_calendar(&self) -> bool {
        matches!(self, Self::Calendar(..) | Self::ServerCalendar(..))
    }

    /// Returns its index in [`KINDS`].
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
            Self::ServerCalendar(..) => 9,
        }
    }
}

impl Plan {
    /// Returns its name in reports.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { seed, scene, topology, .. } = self;
        match scene {
            Some(scene) => {
                let faults: Vec<_> = self.faults.iter().map(|fault| &fault.trouble).collect();
                format!("scene {seed} ({scene:?}, {faults:?})")
            }
            None if self.has_leaders() => format!("leaders of seed {seed} over {topology:?}"),
            None => format!("seed {seed} over {topology:?}"),
        }
    }

    /// Returns the program that runs worlds like this one.
    #[must_use]
    pub fn program(&self) -> &'static str {
        match self.scene {
            Some(_) => "scenes",
            None if self.has_leaders() => "leaders",
            None => "seeds",
        }
    }

    fn has_leaders(&self) -> bool {
        self.campaigns().next().is_some()
    }

    /// Returns all campaigns, with the numbers of their processes.
    pub(crate) fn campaigns(&self) -> impl Iterator<Item = (usize, &Campaign)> {
        let processes = self.processes.iter().enumerate();
        processes.flat_map(|(number, setup)| setup.campaigns.iter().map(move |it| (number, it)))
    }

    /// Returns the keys for which processes campaign.
    pub(crate) fn leader_keys(&self) -> BTreeSet<&'static str> {
        self.campaigns().map(|(_, campaign)| campaign.key).collect()
    }

    /// Returns all locks that must be free in the end, and the notes of terms.
    pub(crate) fn keys(&self) -> Vec<LockKey> {
        let leaders = self.leader_keys();
        let key = |prefix: &str, key: &str| LockKey::new(prefix, key).expect("a good key");
        let locks = KEYS.iter().filter(|_| leaders.is_empty()).chain(&leaders);
        let locks = locks.map(|name| key("lock:", name));
        locks.chain(leaders.iter().map(|name| key("lockattr:term:lock:", name))).collect()
    }
}
