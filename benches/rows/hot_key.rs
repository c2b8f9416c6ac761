//! Tasks of one process that all use the same key.

use std::time::Duration;

use super::{best_crate, of};
use crate::fleet::Size;
use crate::load::Load;
use crate::measured::Measured;
use crate::peers::{BEST_CRATES, CRATES, LANGUAGES, Peer};
use crate::report::{Bar, Line, Plot, Report};
use crate::rounds::compare;
use crate::servers::Engine;

const WAITERS: [usize; 3] = [2, 16, 64];

/// The number of tasks that the bars apply to; on the newest servers it is the only one.
const JUDGED: usize = 16;

/// Longer than the longest pause of any peer.
const ROUND: Duration = Duration::from_millis(400);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("hot-key", "one process, all tasks the same key");
    let peers = [&[Peer::Ours, Peer::Bare][..], &CRATES].concat();
    let mut rates: Vec<Line> = peers.iter().map(|&peer| Line::of(peer)).collect();
    let mut waits = rates.clone();
    for engine in Engine::ALL {
        let usual = engine == Engine::Usual;
        for &waiters in if usual { &WAITERS[..] } else { &[JUDGED] } {
            let Some(started) = engine.start(report).await else { break };
            report.note(&format!("{waiters} tasks"));
            let size = Size::new(1, Load::hot(waiters));
            let languages = if waiters == JUDGED { &LANGUAGES[..] } else { &[] };
            let peers = match engine {
                Engine::Usual => [&peers[..], languages].concat(),
                _ => [&[Peer::Ours][..], &BEST_CRATES].concat(),
            };
            let all = compare(report, &started.server, &peers, size, (time, ROUND)).await;
            report.table(&all);
            if waiters == JUDGED {
                judge(report, &all);
            }
            for (rates, waits) in rates.iter_mut().zip(&mut waits).filter(|_| usual) {
                rates.push(waiters, &all, |measured| measured.hand_offs.median);
                waits.push(waiters, &all, |measured| measured.wait(0.99).as_secs_f64() * 1e3);
            }
        }
    }
    report.plot(&Plot {
        file: "hand-offs.svg",
        title: "One hot key in one process: hand-offs a second",
        x: "tasks that want it",
        y: "a second",
        lines: rates,
    });
    report.plot(&Plot {
        file: "waits.svg",
        title: "One hot key in one process: 99 of 100 waits are shorter",
        x: "tasks that want it",
        y: "milliseconds",
        lines: waits,
    });
}

fn judge(report: &mut Report, all: &[Measured]) {
    let Some(ours) = of(all, Peer::Ours) else { return };
    // A task that reacquires the lock before any other has asked is fast, but hands nothing off.
    // Hence both figures.
    if let Some(best) = best_crate(all, |measured| measured.rate.median) {
        let what = format!("acquisitions, over the best crate's ({})", best.peer.name());
        report.bar(&what, ours.over(best), "x", Bar::AtLeast(20.0));
    }
    if let Some(best) = best_crate(all, |measured| measured.hand_offs.median) {
        let what = format!("hand-offs, over the best crate's ({})", best.peer.name());
        report.bar(&what, ours.hand_offs_over(best), "x", Bar::AtLeast(20.0));
    }
    report.bar("commands for an acquisition", ours.commands, "", Bar::AtMost(0.2));
    report.bar("share, least over most", ours.share, "", Bar::AtLeast(0.9));
}
