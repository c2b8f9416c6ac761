//! Nested calls of a holder: they take nanoseconds and send nothing to the server.

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{RedisServer, bare};

use super::note_instructions;
use crate::commands::Monitor;
use crate::instructions::Counted;
use crate::repeated::{Work, alternate};
use crate::report::{Bar, Report};
use crate::spread::Spread;

/// Each with its number of nested calls.
const WORKS: [(Work, u8); 3] =
    [(Work::Reentry, 1), (Work::AnnotatedReentry, 1), (Work::FourInside, 4)];

/// Takes milliseconds, so no renewal comes between.
const NESTED: u64 = 10_000;

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("reentry", "a nested call with the holder's own key");
    let server = RedisServer::start().await;
    let manager = LockManager::connect(bare(&server.url())).await.expect("the server answers");
    let works = WORKS.map(|(work, _)| work);
    let turns = manager.scope(alternate(works, &manager, time)).await.expect("no other caller");
    for (n, (work, calls)) in WORKS.into_iter().enumerate() {
        let one = turns.iter().map(|turn| turn[n] / f64::from(calls));
        let Some(nanos) = Spread::of(one) else { continue };
        report.bar(&format!("{}, one call", work.name()), nanos, "ns", Bar::AtMost(300.0));
    }

    let within = manager.with_lock("reentry", LockOptions::new(), async |_| {
        let monitor = Monitor::begin(&server).await;
        for (work, _) in WORKS {
            // Inside a hold, the hold of the work itself is nested as well.
            manager.scope(work.repeat(&manager, NESTED)).await.expect("no other caller");
        }
        monitor.end().await.sent
    });
    let commands = within.await.expect("no other caller uses it");
    let calls: u64 = WORKS.iter().map(|(_, calls)| NESTED * u64::from(*calls)).sum();
    let what = format!("commands for {calls} nested calls");
    report.bar(&what, commands as f64, "", Bar::AtMost(0.0));
    note_instructions(report, works.map(Counted::Work));
}
