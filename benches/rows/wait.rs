//! How long the last waiter waits: the tail, not the mean.

use std::time::Duration;

use super::of;
use crate::fleet::Size;
use crate::load::Load;
use crate::measured::Measured;
use crate::peers::{CRATES, LANGUAGES, Peer};
use crate::report::{Bar, Report};
use crate::rounds::compare;
use crate::servers::Engine;

const TASKS: usize = 8;
const BODY: Duration = Duration::from_millis(1);

/// Long, because a wait that is cut off by the end of a round would not count.
const ROUND: Duration = Duration::from_secs(1);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("wait", "8 tasks that want the same key, for 1 ms each time");
    for engine in Engine::ALL {
        let Some(started) = engine.start(report).await else { continue };
        let peers = match engine {
            Engine::Usual => [&[Peer::Ours, Peer::Bare][..], &CRATES, &LANGUAGES].concat(),
            _ => vec![Peer::Ours],
        };
        let size = Size::new(1, Load { body: BODY, ..Load::hot(TASKS) });
        let all = compare(report, &started.server, &peers, size, (time, ROUND)).await;
        report.table(&all);
        judge(report, &all);
    }
}

fn judge(report: &mut Report, all: &[Measured]) {
    let p99 = |peer: &Peer| Some(of(all, *peer)?.wait(0.99).as_secs_f64() * 1e3);
    let crates: Vec<f64> = CRATES.iter().filter_map(p99).collect();
    if let Some(best) = crates.into_iter().reduce(f64::min) {
        report.note(&format!("the best Rust peer's p99: {best:.1} ms"));
    }
    if let Some(ours) = of(all, Peer::Ours) {
        // A timer of 1 ms fires at the following tick, so each turn is as long as the measured
        // body.
        let turns = ours.body * TASKS as u32;
        report
            .note(&format!("a body of {BODY:?} took {:.2?}; eight of them {turns:.2?}", ours.body));
        let ratio = ours.wait(0.99).as_secs_f64() / turns.as_secs_f64();
        report.bar("p99 of the wait over eight bodies", ratio, "x", Bar::AtMost(1.5));
    }
}
