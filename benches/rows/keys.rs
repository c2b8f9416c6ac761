//! Tasks of one process with a key each: nobody waits, all share the connections.

use std::time::Duration;

use lockattr_tests::RedisServer;

use super::of;
use crate::fleet::Size;
use crate::load::Load;
use crate::peers::Peer;
use crate::report::{Bar, Line, Plot, Report};
use crate::rounds::compare;

const KEYS: [usize; 5] = [1, 4, 16, 64, 256];
const PEERS: [Peer; 4] = [Peer::Bare, Peer::Ours, Peer::Rslock, Peer::Rlock];

/// Short, as with one task.
const ROUND: Duration = Duration::from_millis(200);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("keys", "one process, each task its own key");
    let mut lines = PEERS.map(Line::of).to_vec();
    for keys in KEYS {
        report.note(&format!("{keys} tasks on {keys} keys"));
        let server = RedisServer::start().await;
        let size = Size::new(1, Load::spread(keys));
        let all = compare(report, &server, &PEERS, size, (time, ROUND)).await;
        report.table(&all);
        for line in &mut lines {
            line.push(keys, &all, |measured| measured.rate.median);
        }
        if keys != KEYS[KEYS.len() - 1] {
            continue;
        }
        for (peer, bar) in [(Peer::Rslock, 1.3), (Peer::Bare, 0.9)] {
            if let (Some(ours), Some(other)) = (of(&all, Peer::Ours), of(&all, peer)) {
                let what = format!("{keys} keys: lockattr over {}", peer.name());
                report.bar(&what, ours.over(other), "x", Bar::AtLeast(bar));
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
