//! What a seed says: who there is, and what goes wrong and when.

mod drawn;
mod scene;

use std::time::Duration;

use crate::turn::Part;

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
}
