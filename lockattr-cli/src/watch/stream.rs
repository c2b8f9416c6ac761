//! The changes as lines, for pipes and files.

use std::time::SystemTime;

use lockattr::LockManager;
use tokio::time::{MissedTickBehavior, interval};

use super::Watch;
use super::changes::Seen;
use crate::failure::{Failure, report};
use crate::ls::matching;
use crate::output::{Output, reader_gone};
use crate::run::Signals;

pub(super) async fn run(manager: &LockManager, watch: &Watch) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    tokio::select! {
        _ = signals.next() => Ok(()),
        // Also while nothing changes, when nothing is written.
        () = reader_gone() => Ok(()),
        failed = print_changes(manager, watch) => failed,
    }
}

/// Ends only with a failure.
async fn print_changes(manager: &LockManager, watch: &Watch) -> Result<(), Failure> {
    let mut output = Output::new();
    let mut seen = Seen::default();
    let mut every = interval(watch.every);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut has_answered, mut is_failing) = (false, false);
    loop {
        every.tick().await;
        let rows = match matching(manager, watch.pattern.as_ref()).await {
            Ok(matching) => matching.rows,
            Err(error) if !has_answered => return Err(error.into()),
            Err(error) => {
                if !is_failing {
                    report(&format!("{error}; retrying"));
                }
                is_failing = true;
                continue;
            }
        };
        (has_answered, is_failing) = (true, false);
        for change in seen.changes(&rows, SystemTime::now()) {
            if watch.json {
                output.json(&change)?;
            } else {
                output.line(&change.line())?;
            }
        }
        output.finish()?;
    }
}
