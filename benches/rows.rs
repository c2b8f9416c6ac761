//! The rows: one for each promise of the project about its speed.

mod attribute;
mod cores;
mod engines;
mod etcd;
pub(crate) mod flight;
mod growth;
mod hot_key;
mod keys;
pub(crate) mod leases;
mod modes;
mod mysql;
mod postgres;
mod processes;
mod quorum;
pub(crate) mod recovery;
mod reentry;
mod stalls;
mod storm;
mod uncontended;
mod wait;
mod zookeeper;

use std::time::Duration;

use crate::instructions::Counted;
use crate::measured::Measured;
use crate::peers::Peer;
use crate::report::Report;

/// The delay in each direction of a network with a round-trip time of a millisecond.
const NETWORK: Duration = Duration::from_micros(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Uncontended,
    Keys,
    HotKey,
    Processes,
    Modes,
    Growth,
    Cores,
    Wait,
    Flight,
    Reentry,
    Attribute,
    Leases,
    Quorum,
    Postgres,
    Mysql,
    Zookeeper,
    Etcd,
    Storm,
    Stalls,
    Engines,
    Recovery,
}

impl Row {
    pub(crate) const ALL: [Self; 21] = [
        Self::Uncontended,
        Self::Keys,
        Self::HotKey,
        Self::Processes,
        Self::Modes,
        Self::Growth,
        Self::Cores,
        Self::Wait,
        Self::Flight,
        Self::Reentry,
        Self::Attribute,
        Self::Leases,
        Self::Quorum,
        Self::Postgres,
        Self::Mysql,
        Self::Zookeeper,
        Self::Etcd,
        Self::Storm,
        Self::Stalls,
        Self::Engines,
        Self::Recovery,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uncontended => "uncontended",
            Self::Keys => "keys",
            Self::HotKey => "hot-key",
            Self::Processes => "processes",
            Self::Modes => "modes",
            Self::Growth => "growth",
            Self::Cores => "cores",
            Self::Wait => "wait",
            Self::Flight => "flight",
            Self::Reentry => "reentry",
            Self::Attribute => "attribute",
            Self::Leases => "leases",
            Self::Quorum => "quorum",
            Self::Engines => "engines",
            Self::Recovery => "recovery",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Zookeeper => "zookeeper",
            Self::Etcd => "etcd",
            Self::Storm => "storm",
            Self::Stalls => "stalls",
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|row| row.name() == name);
        known.ok_or_else(|| format!("no row is called `{name}`"))
    }

    /// Measures each way of the row for `time`. `only` limits some rows to one engine.
    pub(crate) async fn measure(self, report: &mut Report, time: Duration, only: Option<&str>) {
        match self {
            Self::Uncontended => uncontended::measure(report, time).await,
            Self::Keys => keys::measure(report, time).await,
            Self::HotKey => hot_key::measure(report, time).await,
            Self::Processes => processes::measure(report, time).await,
            Self::Modes => modes::measure(report, time).await,
            Self::Growth => growth::measure(report, time).await,
            Self::Cores => cores::measure(report, time).await,
            Self::Wait => wait::measure(report, time).await,
            Self::Flight => flight::measure(report).await,
            Self::Reentry => reentry::measure(report, time).await,
            Self::Attribute => attribute::measure(report, time).await,
            Self::Leases => leases::compare(report, time).await,
            Self::Quorum => quorum::measure(report, time).await,
            Self::Engines => engines::measure(report, time).await,
            Self::Recovery => recovery::measure(report).await,
            Self::Postgres => postgres::measure(report, time).await,
            Self::Mysql => mysql::measure(report, time).await,
            Self::Zookeeper => zookeeper::measure(report, time).await,
            Self::Etcd => etcd::measure(report, time).await,
            Self::Storm => storm::measure(report, time, only).await,
            Self::Stalls => stalls::measure(report, time, only).await,
        }
    }
}

fn of(all: &[Measured], peer: Peer) -> Option<&Measured> {
    all.iter().find(|measured| measured.peer == peer)
}

/// The best of the Rust crates by `figure`; more is better.
fn best_crate(all: &[Measured], figure: impl Fn(&Measured) -> f64) -> Option<&Measured> {
    let crates = all.iter().filter(|measured| measured.peer.is_crate());
    crates.max_by(|a, b| figure(a).total_cmp(&figure(b)))
}

/// Counts and prints the instructions of each, or why they cannot be counted.
fn note_instructions<const N: usize>(report: &mut Report, works: [Counted; N]) -> [Option<f64>; N] {
    works.map(|work| match work.count() {
        Ok(count) => {
            report.note(&format!("{:<18} {count:.0} instructions", work.name()));
            Some(count)
        }
        Err(why) => {
            report.note(&format!("{:<18} no instructions: {why}", work.name()));
            None
        }
    })
}
