//! The processes of one peer in one row: starts them, runs rounds in all of them, and adds the
//! results.

mod cores;
mod process;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use lockattr_tests::{Cli, RedisServer, bare};

use crate::commands::{Asked, Monitor, server_cpu};
use crate::load::{Keys, Load};
use crate::outcome::Outcome;
use crate::peers::Peer;
pub(crate) use cores::Cores;
use process::Process;

static STARTED: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) processes: usize,
    pub(crate) load: Load,
    pub(crate) cores: Cores,
}

impl Size {
    /// On any cores, as the system chooses.
    pub(crate) fn new(processes: usize, load: Load) -> Self {
        Self { processes, load, cores: Cores::Any }
    }

    pub(crate) fn is_contended(self) -> bool {
        self.load.keys == Keys::One && self.processes * self.load.tasks > 1
    }
}

/// Processes that wait for orders.
pub(crate) struct Fleet<'a> {
    pub(crate) peer: Peer,
    pub(crate) size: Size,
    processes: Vec<Process>,
    cli: Cli,
    server: &'a RedisServer,
}

pub(crate) struct Round {
    /// The sum of all its processes, without their `order`.
    pub(crate) outcome: Outcome,
    pub(crate) server: Duration,
    /// How often the next holder was another process, or another task if there is one process.
    pub(crate) hand_offs: u64,
}

/// What the server executed in a round that is not timed.
pub(crate) struct Counted {
    pub(crate) asked: Asked,
    pub(crate) acquisitions: u64,
    pub(crate) hand_offs: u64,
}

impl<'a> Fleet<'a> {
    /// Starts all processes, and returns when they have warmed up.
    pub(crate) async fn start(
        peer: Peer,
        server: &'a RedisServer,
        size: Size,
    ) -> Result<Self, String> {
        // Each fleet has its own key, so that a lease left behind does not delay the next fleet.
        // With `linger` a worker that is killed always leaves one.
        let nth = STARTED.fetch_add(1, Ordering::Relaxed);
        let key = format!("bench:{}:{nth}", peer.name().replace(' ', "-"));
        size.cores.keep_server(server.pid());
        let url = bare(&server.url());
        let starts = (0..size.processes).map(|_| Process::start(peer, &url, &key, size));
        let processes = join_all(starts).await.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { peer, size, processes, cli: server.cli().await, server })
    }

    pub(crate) async fn go(&mut self, window: Duration) -> Result<Round, String> {
        let before = server_cpu(&self.cli).await;
        let (outcome, hand_offs) = self.work(window).await?;
        let server = server_cpu(&self.cli).await.saturating_sub(before);
        Ok(Round { outcome, server, hand_offs })
    }

    /// Runs one round in which each command is counted, which slows it down.
    pub(crate) async fn count(&mut self, window: Duration) -> Result<Counted, String> {
        let monitor = Monitor::begin(self.server).await;
        let worked = self.work(window).await;
        let asked = monitor.end().await;
        let (outcome, hand_offs) = worked?;
        Ok(Counted { asked, acquisitions: outcome.all, hand_offs })
    }

    /// Runs all processes, and adds their results and the hand-offs.
    async fn work(&mut self, window: Duration) -> Result<(Outcome, u64), String> {
        let rounds = self.processes.iter_mut().map(|process| process.go(window));
        let outcomes = try_join_all(rounds).await?;
        let mut total = Outcome::new(window);
        for one in &outcomes {
            total.add(one);
        }
        let hand_offs = if outcomes.len() > 1 { changes(&outcomes) } else { total.hand_offs };
        Ok((total, hand_offs))
    }
}

/// Merges the acquisitions of all processes by their numbers, and counts the changes of process.
fn changes(outcomes: &[Outcome]) -> u64 {
    let mut order: Vec<(u64, usize)> = Vec::new();
    for (process, outcome) in outcomes.iter().enumerate() {
        order.extend(outcome.order.iter().map(|&number| (number, process)));
    }
    order.sort_unstable();
    order.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u64
}
