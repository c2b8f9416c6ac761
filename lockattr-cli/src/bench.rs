//! `lockattr bench`: the speed of this store from this machine.

mod report;
mod worker;

use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use lockattr::LockManager;
use tokio::time::Instant;

use crate::exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::run::Signals;
use crate::store;
use report::Report;
use worker::Bench as Shared;

const AFTER: &str = "\
Each task acquires and releases keys in a loop. With fewer keys than tasks, the tasks wait for each \
other, and the locks are handed off inside this process. To see hand-offs between processes, use \
`lockattr watch` while the services run.

After the prefix, the keys begin with `lockattr-bench:`; no two runs use the same keys. Nothing of them \
is left in the store afterwards, even after Ctrl-C, which ends the run early.

Exit codes: 0 measured; 2 the store did not answer.

Examples:
  lockattr bench
  lockattr bench --tasks 64 --keys 1 --seconds 10
  lockattr bench --json | jq .per_second";

/// Acquire and release in a loop, and measure how fast that is
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Bench {
    /// How many tasks run at the same time
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
    /// How many keys they share
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    keys: u32,
    /// How long to run
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Bench {
    pub(crate) async fn execute(self, manager: &LockManager) -> Result<u8, Failure> {
        let mut signals = Signals::new()?;
        let began = Instant::now();
        let shared = Shared::new(manager, self.keys);
        let tasks: Vec<_> = (0..self.tasks).map(|task| shared.start(task)).collect();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(self.seconds)) => {}
            _ = signals.next() => {}
            // The first failure stops all tasks.
            () = shared.failed() => {}
        }
        shared.stop();
        let results = join_all(tasks).await;
        let took = began.elapsed();
        // By then the remaining waiters have left the queue, and failed releases were tried again.
        store::leave(manager, &mut signals).await;
        let mut report = Report::new(self.tasks, self.keys);
        for result in results {
            report.add(&result.map_err(|error| Failure::new(exit::ERROR, error.to_string()))??);
        }
        report.took = took;
        let mut output = Output::new();
        if self.json {
            output.json(&report.json())?;
        } else {
            report.table().lines().try_for_each(|line| output.line(line))?;
        }
        output.finish()?;
        Ok(exit::OK)
    }
}
