//! Processes that all use the same key, and the cost of each hand-off for the server: commands,
//! calls of scripts, CPU time.

use std::time::Duration;

use super::{best_crate, of};
use crate::fleet::{Cores, Size};
use crate::load::Load;
use crate::measured::Measured;
use crate::peers::{BEST_CRATES, CRATES, Peer};
use crate::report::{Bar, Line, Plot, Report};
use crate::rounds::{Way, compare, compare_ways};
use crate::servers::Engine;

/// With one task each, so that all but the holder wait. Every acquisition is a hand-off as long as
/// a waiter is queued when the hold ends.
const WAITING: [usize; 3] = [2, 16, 64];

/// The same bound for all of them.
const COMMANDS: Bar = Bar::AtMost(2.2);
const CALLS: Bar = Bar::AtMost(14.0);
const SERVER: Bar = Bar::AtMost(3.0);

/// Longer than the longest pause of any peer.
const ROUND: Duration = Duration::from_millis(400);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("processes", "several processes, all the same key");
    let mut lines: Vec<Line> = with_crates().iter().map(|&peer| Line::of(peer)).collect();
    let mut each = lines.clone();
    for engine in Engine::ALL {
        four_by_four(report, engine, time).await;
        let usual = engine == Engine::Usual;
        for waiting in WAITING {
            let peers = if usual { with_crates() } else { vec![Peer::Ours] };
            let all = one_each(report, engine, &peers, waiting, time).await;
            hand_off(report, engine, waiting, time).await;
            for (line, each) in lines.iter_mut().zip(&mut each).filter(|_| usual) {
                line.push(waiting, &all, |measured| measured.commands.median);
                each.push(waiting, &all, |measured| measured.commands_per_hand_off.median);
            }
        }
    }
    for (file, title, lines) in [
        ("commands.svg", "One hot key: commands to the server for each acquisition", lines),
        ("commands-hand-off.svg", "One hot key: commands to the server for each hand-off", each),
    ] {
        report.plot(&Plot { file, title, x: "processes that wait for it", y: "commands", lines });
    }
}

fn with_crates() -> Vec<Peer> {
    [&[Peer::Ours][..], &CRATES].concat()
}

/// The result of the crates does not depend on the server, so on other servers only the best ones
/// run.
fn with_the_best() -> Vec<Peer> {
    [&[Peer::Ours][..], &BEST_CRATES].concat()
}

/// Four processes of four tasks.
async fn four_by_four(report: &mut Report, engine: Engine, time: Duration) {
    let Some(started) = engine.start(report).await else { return };
    report.note("4 processes, 4 tasks in each");
    let size = Size::new(4, Load { ordered: true, ..Load::hot(4) });
    let peers = if engine == Engine::Usual { with_crates() } else { with_the_best() };
    let all = compare(report, &started.server, &peers, size, (time, ROUND)).await;
    report.table(&all);
    let Some(ours) = of(&all, Peer::Ours) else { return };
    if let Some(best) = best_crate(&all, |measured| measured.rate.median) {
        let what = format!("4 x 4: lockattr over the best crate ({})", best.peer.name());
        report.bar(&what, ours.over(best), "x", Bar::AtLeast(5.0));
    }
    let what = "4 x 4: commands for a hand-off between processes";
    report.bar(what, ours.commands_per_hand_off, "", COMMANDS);
}

/// `waiting` processes that wait, and one holder.
async fn one_each(
    report: &mut Report,
    engine: Engine,
    peers: &[Peer],
    waiting: usize,
    time: Duration,
) -> Vec<Measured> {
    let Some(started) = engine.start(report).await else { return Vec::new() };
    report.note(&format!("{waiting} processes that wait, and one that has it"));
    let size = Size::new(waiting + 1, Load { ordered: true, ..Load::hot(1) });
    let all = compare(report, &started.server, peers, size, (time, ROUND)).await;
    report.table(&all);
    if let Some(ours) = of(&all, Peer::Ours) {
        let what = format!("{waiting} waiting: commands for a hand-off between processes");
        report.bar(&what, ours.commands_per_hand_off, "", COMMANDS);
        let what = format!("{waiting} waiting: calls in scripts for a hand-off");
        report.bar(&what, ours.calls_per_hand_off, "", CALLS);
    }
    all
}

/// The server's CPU time for a hand-off, compared with a pair of uncontended bare commands: both
/// come one at a time.
///
/// All processes are on one core. On its own core an idle server sleeps, and waking it costs two or
/// three times as much as a pair.
async fn hand_off(report: &mut Report, engine: Engine, waiting: usize, time: Duration) {
    let Some(started) = engine.start(report).await else { return };
    report.note(&format!("{waiting} processes that wait, and bare commands alone, on one core"));
    let ordered = Load { ordered: true, ..Load::hot(1) };
    let way = |peer, processes, load| {
        let size = Size { cores: Cores::One, ..Size::new(processes, load) };
        Way { peer, size, server: &started.server }
    };
    let ways = [way(Peer::Ours, waiting + 1, ordered), way(Peer::Bare, 1, Load::hot(1))];
    let all = compare_ways(report, &ways, (time, ROUND)).await;
    report.table(&all);
    if let (Some(ours), Some(bare)) = (of(&all, Peer::Ours), of(&all, Peer::Bare)) {
        let what = format!("{waiting} waiting: the server's time for a hand-off over a bare pair");
        report.bar(&what, ours.hand_off_server_over(bare), "x", SERVER);
    }
}
