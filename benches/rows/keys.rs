//! Tasks of one process with a key each: no task waits for a lock, and all share the connections.

use std::time::Duration;

use super::of;
use crate::fleet::Size;
use crate::load::Load;
use crate::measured::Measured;
use crate::peers::Peer;
use crate::report::{Bar, Line, Plot, Report};
use crate::rounds::compare;
use crate::servers::{Engine, Started};

const KEYS: [usize; 4] = [1, 16, 64, 256];

/// The numbers of tasks that the bars apply to; on the newest servers they are the only ones.
const SOME: usize = 16;
const MANY: usize = 256;

const PEERS: [Peer; 4] = [Peer::Bare, Peer::Ours, Peer::Rslock, Peer::Rlock];

/// Short, as with one task.
const ROUND: Duration = Duration::from_millis(200);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("keys", "one process, each task its own key");
    let mut lines = PEERS.map(Line::of).to_vec();
    for engine in Engine::ALL {
        let usual = engine == Engine::Usual;
        let (keys, peers) =
            if usual { (&KEYS[..], &PEERS[..]) } else { (&[SOME, MANY][..], &PEERS[..3]) };
        for &keys in keys {
            let Some(started) = engine.start(report).await else { break };
            report.note(&format!("{keys} tasks on {keys} keys"));
            let size = Size::new(1, Load::spread(keys));
            let all = compare(report, &started.server, peers, size, (time, ROUND)).await;
            report.table(&all);
            judge(report, &started, keys, &all);
            for line in lines.iter_mut().filter(|_| usual) {
                line.push(keys, &all, |measured| measured.rate.median);
            }
        }
    }
    report.plot(&Plot {
        file: "keys.svg",
        title: "Acquire and release, one process, each task its own key",
        x: "keys",
        y: "a second",
        lines,
    });
}

fn judge(report: &mut Report, started: &Started, keys: usize, all: &[Measured]) {
    let [ours, bare, rslock] = [Peer::Ours, Peer::Bare, Peer::Rslock].map(|peer| of(all, peer));
    let (Some(ours), Some(bare)) = (ours, bare) else { return };
    let what = format!("{keys} keys: lockattr over bare commands");
    match keys {
        SOME => report.bar(&what, ours.over(bare), "x", Bar::AtLeast(0.95)),
        MANY => {
            let bar = Bar::AtLeast(started.bar(1.3, 1.0));
            report.bar(&what, ours.over(bare), "x", bar);
            if let Some(rslock) = rslock {
                let what = format!("{keys} keys: lockattr over rslock");
                report.bar(&what, ours.over(rslock), "x", Bar::AtLeast(1.4));
            }
            let what = format!("{keys} keys: the server's time for a pair over bare");
            let bar = Bar::AtMost(started.bar(0.75, 1.15));
            report.bar(&what, ours.server_over(bare), "x", bar);
        }
        _ => {}
    }
}
