//! One task that acquires and releases a key that nobody else wants.

use std::time::Duration;

use lockattr_tests::RedisServer;

use super::of;
use crate::fleet::{Cores, Size};
use crate::load::Load;
use crate::peers::{LANGUAGES, Peer};
use crate::report::{Bar, Report};
use crate::rounds::compare;

/// The crates once each: their pauses make no difference here.
const PEERS: [Peer; 6] =
    [Peer::Bare, Peer::Ours, Peer::Background, Peer::Linger, Peer::Rslock, Peer::Rlock];

/// The bars are about the first: a server is elsewhere. The second tells what is computed, with less
/// noise.
const PLACES: [(Cores, &str); 2] = [
    (Cores::Apart, "the server on a core of its own, so that each round trip wakes both"),
    (Cores::One, "the server on the same core, so that only what is computed counts"),
];

/// Short: only ratios are of interest, and noise comes and goes.
const ROUND: Duration = Duration::from_millis(50);

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("uncontended", "one task that acquires and releases");
    let server = RedisServer::start().await;
    for (cores, note) in PLACES {
        report.note(note);
        let size = Size { cores, ..Size::new(1, Load::hot(1)) };
        let peers = [&PEERS[..], &LANGUAGES].concat();
        let all = compare(report, &server, &peers, size, (time, ROUND)).await;
        report.table(&all);
        let Some(bare) = of(&all, Peer::Bare) else { continue };
        for (peer, bar) in [(Peer::Ours, 0.95), (Peer::Background, 1.7), (Peer::Linger, 100.0)] {
            if let Some(ours) = of(&all, peer) {
                let what = format!("cores {}: {} over bare commands", cores.name(), peer.name());
                report.bar(&what, ours.over(bare), "x", Bar::AtLeast(bar));
            }
        }
    }
}
