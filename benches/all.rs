//! Every number the project holds itself to, measured beside its peers in one run.
//!
//! ```text
//! cargo bench -p lockattr-benches                            # all rows, almost half an hour
//! cargo bench -p lockattr-benches -- row hot-key row wait    # these
//! cargo bench -p lockattr-benches -- --seconds 10            # longer: each way of each row
//! ```
//!
//! Starts servers of its own for each row. Writes `results/*.csv` and `results/*.svg`. Nothing is
//! asserted: each figure stands beside its bar, and only ratios mean anything elsewhere.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to a person")]

mod command_line;
mod commands;
mod commits;
mod fleet;
mod instructions;
mod load;
mod measured;
mod outcome;
mod own_cpu;
mod pairs;
mod peers;
mod rates;
mod repeated;
mod report;
mod rounds;
mod rows;
mod servers;
mod spread;
mod taken;
mod worker;

use std::process::ExitCode;

use command_line::{CommandLine, Mode, USAGE};
use report::Report;
use tokio::runtime::Runtime;

/// One that tells how much it has given out; the same for all who are compared here.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let CommandLine { mode, rows, seconds, only } = match CommandLine::read(&words) {
        Ok(read) => read,
        Err(mistake) => {
            eprintln!("{mistake}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // As `#[tokio::main]` makes it: what a program has that asks for nothing special.
    let runtime = || Runtime::new().expect("a runtime");
    match mode {
        Mode::Rows => {
            let mut report = Report::new();
            for row in rows {
                runtime().block_on(row.measure(&mut report, seconds, only.as_deref()));
            }
            report.finish();
        }
        Mode::Worker(words) => worker::main(&words),
        Mode::Leases { arrival } => runtime().block_on(rows::leases::measure(&arrival, seconds)),
        Mode::Flight { url } => runtime().block_on(rows::flight::callers(&url)),
        Mode::Hold { url, key } => runtime().block_on(rows::recovery::hold(&url, &key)),
        Mode::Instructions { of, count } => {
            of.execute(count).expect("no other caller uses the keys");
        }
    }
    ExitCode::SUCCESS
}
