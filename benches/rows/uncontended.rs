//! One task that acquires and releases an uncontended key.

use std::time::Duration;

use super::{note_instructions, of};
use crate::fleet::{Cores, Size};
use crate::instructions::Counted;
use crate::load::Load;
use crate::pairs::Pair;
use crate::peers::{LANGUAGES, Peer};
use crate::report::{Bar, Report};
use crate::rounds::compare;
use crate::servers::{Engine, Started};
use lockattr_tests::bare;

/// Each crate once: the pauses make no difference here.
const PEERS: [Peer; 6] =
    [Peer::Bare, Peer::Ours, Peer::Background, Peer::Linger, Peer::Rslock, Peer::Rlock];

/// Where the servers differ; `linger` sends them nothing.
const ON_THE_NEWEST: [Peer; 3] = [Peer::Bare, Peer::Ours, Peer::Background];

/// The server on another core, and on the same core. The second measures CPU time, with less noise.
const PLACES: [Place; 2] = [
    Place {
        cores: Cores::Apart,
        note: "the server on a core of its own, so that each round trip wakes both",
        bars: [(Peer::Ours, 0.97), (Peer::Background, 1.7), (Peer::Linger, 100.0)],
    },
    Place {
        cores: Cores::One,
        note: "the server on the same core, so that only what is computed counts",
        bars: [(Peer::Ours, 0.85), (Peer::Background, 1.2), (Peer::Linger, 100.0)],
    },
];

/// Where the server runs, and the promised rate relative to bare commands.
struct Place {
    cores: Cores,
    note: &'static str,
    bars: [(Peer, f64); 3],
}

/// Short, because only ratios matter, and noise comes and goes.
const ROUND: Duration = Duration::from_millis(50);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("uncontended", "one task that acquires and releases");
    for engine in Engine::ALL {
        let Some(started) = engine.start(report).await else { continue };
        let (peers, time) = match engine {
            Engine::Usual => ([&PEERS[..], &LANGUAGES].concat(), time),
            _ => (ON_THE_NEWEST.to_vec(), time / 2),
        };
        for Place { cores, note, bars } in PLACES {
            report.note(note);
            let size = Size { cores, ..Size::new(1, Load::hot(1)) };
            let all = compare(report, &started.server, &peers, size, (time, ROUND)).await;
            report.table(&all);
            let Some(bare) = of(&all, Peer::Bare) else { continue };
            for (peer, bar) in bars {
                if let Some(ours) = of(&all, peer) {
                    let what =
                        format!("cores {}: {} over bare commands", cores.name(), peer.name());
                    report.bar(&what, ours.over(bare), "x", Bar::AtLeast(bar));
                }
            }
        }
        instructions(report, &started);
    }
}

/// The instructions of the client side, the Redis client included.
fn instructions(report: &mut Report, started: &Started) {
    let pairs = [Pair::Ours, Pair::Background, Pair::Bare];
    let counted = pairs.map(|pair| Counted::Pair(pair, bare(&started.server.url())));
    if let [Some(ours), ..] = note_instructions(report, counted) {
        report.bar("instructions of our side for a pair", ours, "", Bar::AtMost(30_000.0));
    }
}
