//! Processes that all want the same key, and what the server is asked for each change of hands.

use std::time::Duration;

use lockattr_tests::RedisServer;

use super::{best_crate, of};
use crate::fleet::Size;
use crate::load::Load;
use crate::peers::{CRATES, Peer};
use crate::report::{Bar, Line, Plot, Report};
use crate::rounds::{Measured, compare};

/// With one task each, so that all wait but the one that holds: every acquisition is a hand-off, as
/// long as somebody is in line when it ends.
const WAITING: [usize; 3] = [2, 16, 64];

/// Whatever their number.
const COMMANDS: Bar = Bar::AtMost(2.2);

/// Longer than the longest pause of anybody.
const ROUND: Duration = Duration::from_millis(400);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("processes", "several processes, all the same key");
    let all = one_size(report, 4, 4, time).await;
    let best = best_crate(&all, |measured| measured.rate.median);
    if let (Some(ours), Some(best)) = (of(&all, Peer::Ours), best) {
        let what = format!("4 x 4: lockattr over the best crate ({})", best.peer.name());
        report.bar(&what, ours.over(best), "x", Bar::AtLeast(5.0));
    }
    judge(report, "4 x 4", &all);

    let mut lines: Vec<Line> = peers().iter().map(|&peer| Line::of(peer)).collect();
    let mut each = lines.clone();
    for waiting in WAITING {
        let all = one_size(report, waiting + 1, 1, time).await;
        judge(report, &format!("{waiting} waiting"), &all);
        for (line, each) in lines.iter_mut().zip(&mut each) {
            line.push(waiting, &all, |measured| measured.commands.median);
            each.push(waiting, &all, |measured| measured.commands_per_hand_off.median);
        }
    }
    for (file, title, lines) in [
        ("commands.svg", "One hot key: commands to the server for each acquisition", lines),
        ("commands-hand-off.svg", "One hot key: commands to the server for each hand-off", each),
    ] {
        report.plot(&Plot { file, title, x: "processes that wait for it", y: "commands", lines });
    }
}

fn peers() -> Vec<Peer> {
    [&[Peer::Ours][..], &CRATES].concat()
}

async fn one_size(
    report: &mut Report,
    processes: usize,
    tasks: usize,
    time: Duration,
) -> Vec<Measured> {
    report.note(&format!("{processes} processes, {tasks} tasks in each"));
    let server = RedisServer::start().await;
    let size = Size::new(processes, Load { ordered: true, ..Load::hot(tasks) });
    let all = compare(report, &server, &peers(), size, (time, ROUND)).await;
    report.table(&all);
    all
}

fn judge(report: &mut Report, size: &str, all: &[Measured]) {
    if let Some(ours) = of(all, Peer::Ours) {
        let what = format!("{size}: commands for a hand-off between processes");
        report.bar(&what, ours.commands_per_hand_off, "", COMMANDS);
    }
}
