//! The topologies, and the faults for each: only those that it promises to survive
//! (docs/which-store.md).

mod cluster;
mod engines;
mod fleets;
mod redlock;
mod sentinel;
mod sessions;

use std::time::Duration;

use lockattr_tests::Engine;

use crate::nemesis::{Attack, Harm, Trouble};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::round;

/// Servers that can be disturbed.
#[allow(async_fn_in_trait, reason = "one task acquires")]
pub(crate) trait Topology: Engine {
    /// The faults that its servers survive.
    const HARMS: &'static [Harm];

    /// The faults that the processes that use it survive.
    const TROUBLES: &'static [Trouble] = NETWORK;

    /// More options of its URL.
    const SETTINGS: &'static str = "";

    /// Whether all modes are supported, and several keys at once.
    const ALL_MODES: bool = true;

    /// Whether a wait-queue entry expires when its process is killed, stopped or cut off, as
    /// docs/queue.md describes. PostgreSQL and MySQL skip a killed process only when it reaches the
    /// head.
    const ENTRIES_END: bool = true;

    /// How long a queue, or the lock that it keeps, may outlive its claims, where the store forgets those by a
    /// time of their own.
    const QUEUE_LASTS: Duration = Duration::ZERO;

    /// Does it, and returns when all is well again.
    async fn suffer(&self, attack: Attack<Harm>);

    /// As if the time since the last sweep had passed, where the clients sweep.
    async fn sweep_is_due(&self) {}
}

/// All faults of a process and its network.
pub(crate) const NETWORK: &[Trouble] = &[
    Trouble::Killed,
    Trouble::Stopped,
    Trouble::CalendarJumped,
    Trouble::NetworkCut,
    Trouble::NetworkSilent,
    Trouble::RepliesHeld,
    Trouble::RepliesSwallowed,
    Trouble::AllSwallowed,
    Trouble::NetworkSlow,
    Trouble::OneWayCut,
    Trouble::OneWaySilent,
];

/// `KEPT` of the scripts. A node of a quorum that rests after a restart is asked by no later request that would remove
/// it earlier.
const REDIS_QUEUE_LASTS: Duration = Duration::from_secs(32);

/// The faults of a process without those of its network.
const PROCESS: &[Trouble] = &[Trouble::Killed, Trouble::Stopped, Trouble::CalendarJumped];

macro_rules! topologies {
    ($($name:literal: $topology:ty),* $(,)?) => {
        /// The names that `--on` accepts.
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        /// Runs one round on the topology of that name.
        pub(crate) async fn round_on(name: &'static str, plan: &Plan, seed: u64) -> Outcome {
            match name {
                $($name => Box::pin(round::run::<$topology>(name, plan, seed)).await,)*
                name => unreachable!("the plan accepted {name}"),
            }
        }
    };
}

topologies! {
    "redis": lockattr_tests::RedisServer,
    "sentinel": lockattr_tests::Sentinels,
    "cluster": lockattr_tests::Cluster,
    "redlock": lockattr_tests::Independents,
    "postgres": lockattr_tests::PostgresServer,
    "postgres-session": sessions::Advisory,
    "mysql": lockattr_tests::MariaDb,
    "mysql-session": sessions::GetLock,
    "zookeeper": lockattr_tests::ZooKeeper,
    "etcd": lockattr_tests::Etcd,
}
