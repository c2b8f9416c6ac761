//! How many instructions a piece of work takes, counted by valgrind: the same in every run, where
//! nanoseconds are not.
//!
//! This program runs itself under callgrind, once with some repetitions and once with three times
//! as many. The difference is the work alone: no start, no first connection, and no function has to
//! be found by its name in what the compiler left.

use std::process::{Command, Stdio};

use lockattr::{Error, LockManager};
use tokio::runtime::Builder;

use crate::repeated::Work;

/// Fewer than three times as many.
const FEW: u64 = 2_000;

/// For one of `work`; or why they cannot be counted.
pub(crate) fn count(work: Work) -> Result<f64, String> {
    let more = under_callgrind(work, 3 * FEW)?;
    let few = under_callgrind(work, FEW)?;
    Ok(more.saturating_sub(few) as f64 / (2 * FEW) as f64)
}

/// What runs under valgrind. One thread, no server.
pub(crate) fn execute(work: Work, count: u64) -> Result<(), Error> {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let manager = LockManager::connect("memory://").await?;
        manager.install()?;
        work.repeat(&manager, count).await
    })
}

fn under_callgrind(work: Work, count: u64) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(program).args(["instructions", work.name(), &count.to_string()]);
    valgrind.stdin(Stdio::null());
    let ran = valgrind.output().map_err(|error| format!("valgrind is not present: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    let collected =
        said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match collected {
        Some(instructions) if ran.status.success() => Ok(instructions),
        _ => Err(format!("valgrind: {}\n{said}", ran.status)),
    }
}
