//! One key of one process in each mode: one holder at a time, four holders, readers and writers.

use std::time::Duration;

use super::of;
use crate::fleet::Size;
use crate::load::Load;
use crate::peers::Peer;
use crate::report::{Bar, Report};
use crate::rounds::compare;
use crate::servers::Engine;

const TASKS: usize = 16;
const PEERS: [Peer; 3] = [Peer::Ours, Peer::Permits, Peer::Mixed];

/// Longer than what a peer leaves behind for the next.
const ROUND: Duration = Duration::from_millis(400);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("modes", "one process, 16 tasks, one key: exclusive, permits, readers and writers");
    for engine in Engine::ALL {
        let Some(started) = engine.start(report).await else { continue };
        let size = Size::new(1, Load::hot(TASKS));
        let all = compare(report, &started.server, &PEERS, size, (time, ROUND)).await;
        report.table(&all);
        let Some(exclusive) = of(&all, Peer::Ours) else { continue };
        for (peer, bar) in [(Peer::Permits, 0.1), (Peer::Mixed, 0.25)] {
            if let Some(shared) = of(&all, peer) {
                let what = format!("{} over exclusive hand-overs", peer.name());
                report.bar(&what, shared.over(exclusive), "x", Bar::AtLeast(bar));
            }
        }
    }
}
