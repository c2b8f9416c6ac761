//! How the cost of an acquisition grows with the waiters on its key, and with the number of held
//! keys.

mod held;
mod waiters;

use std::time::Duration;

use crate::report::{Bar, Report};
use crate::servers::Engine;
use waiters::Crowd;

const WAITERS: [usize; 5] = [1, 10, 100, 1_000, 10_000];

/// What counts as constant: noise, the depth of a sorted set and the processor's caches all add
/// something.
const FLAT_TIME: Bar = Bar::AtMost(1.5);
const FLAT_COMMANDS: Bar = Bar::AtMost(1.1);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("growth", "one key with many waiters, and a server with many held keys");
    for engine in Engine::ALL {
        by_waiters(report, engine, time).await;
        held::measure(report, engine, time).await;
    }
}

/// Each number of waiters has a new server, without data of the others.
async fn by_waiters(report: &mut Report, engine: Engine, time: Duration) {
    let mut all = Vec::new();
    for waiting in WAITERS {
        let Some(started) = engine.start(report).await else { return };
        let crowd = Crowd::gather(&started.server, waiting).await;
        let cost = crowd.measure(time / 2).await;
        if let Err(why) = crowd.leave().await {
            report.note(&format!("{waiting} waiters: {why}"));
        }
        let [rate, server, commands, calls] = [cost.rate, cost.server, cost.commands, cost.calls];
        report.note(&format!(
            "{waiting:>6} waiters: {rate:>6.0} acquisitions a second; for each, the server computes \
             {server:>6.1} µs, clients send {commands:.2} commands, scripts make {calls:.1} calls"
        ));
        all.push((waiting, cost));
    }
    // A single waiter often has not asked again when the holder releases. Then there is no
    // hand-off, which is cheaper for another reason.
    let [_, (few, least), more @ ..] = all.as_slice() else { return };
    for (waiting, cost) in more {
        let what = format!("{waiting} waiters over {few}: the server's time");
        report.bar(&what, cost.server / least.server, "x", FLAT_TIME);
        let what = format!("{waiting} waiters over {few}: commands");
        report.bar(&what, cost.commands / least.commands, "x", FLAT_COMMANDS);
    }
}
