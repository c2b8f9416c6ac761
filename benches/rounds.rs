//! Runs the same rounds for all peers in turn, so that noise affects all alike.

use std::time::Duration;

use lockattr_tests::RedisServer;

use crate::fleet::{Counted, Fleet, Size};
use crate::measured::Measured;
use crate::peers::Peer;
use crate::report::Report;

/// The least number of rounds, however long they are: fewer have no useful median.
const ROUNDS: u32 = 5;

/// How often each peer is counted, and for how long at most. The counts hardly differ from round to
/// round, whatever the load of the machine.
const COUNTS: u32 = 3;
const COUNTED: Duration = Duration::from_millis(100);

/// Measures each of `peers` for `time`, in rounds ABBA… of about `round`, and reports those that
/// cannot be measured.
///
/// Short rounds see the same noise; long ones are for peers with long waits.
pub(crate) async fn compare(
    report: &mut Report,
    server: &RedisServer,
    peers: &[Peer],
    size: Size,
    times: (Duration, Duration),
) -> Vec<Measured> {
    let ways: Vec<_> = peers.iter().map(|&peer| Way { peer, size, server }).collect();
    compare_ways(report, &ways, times).await
}

#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) peer: Peer,
    pub(crate) size: Size,
    pub(crate) server: &'a RedisServer,
}

/// The same for peers with different sizes or servers. The result has the order of `ways`.
pub(crate) async fn compare_ways(
    report: &mut Report,
    ways: &[Way<'_>],
    (time, round): (Duration, Duration),
) -> Vec<Measured> {
    let mut fleets = Vec::new();
    for (place, &Way { peer, size, server }) in ways.iter().enumerate() {
        match Fleet::start(peer, server, size).await {
            Ok(fleet) => fleets.push((place, fleet, Vec::new())),
            Err(why) => report.not_present(peer, &why),
        }
    }
    let count = (time.div_duration_f64(round) as u32).max(ROUNDS);
    for _ in 0..count {
        // The last comes first next time, so that no peer always follows the same one.
        fleets.reverse();
        let mut going = Vec::new();
        for (place, mut fleet, mut rounds) in fleets {
            match fleet.go(time / count).await {
                Ok(round) => {
                    rounds.push(round);
                    going.push((place, fleet, rounds));
                }
                Err(why) => report.not_present(fleet.peer, &why),
            }
        }
        fleets = going;
    }
    fleets.sort_by_key(|&(place, ..)| place);
    let mut all = Vec::new();
    for (_, mut fleet, rounds) in fleets {
        match counts(&mut fleet, COUNTED.min(time / count)).await {
            Ok(counted) => all.extend(Measured::of(fleet.peer, fleet.size, &rounds, &counted)),
            Err(why) => report.not_present(fleet.peer, &why),
        }
    }
    all
}

async fn counts(fleet: &mut Fleet<'_>, window: Duration) -> Result<Vec<Counted>, String> {
    let mut all = Vec::new();
    for _ in 0..COUNTS {
        all.push(fleet.count(window).await?);
    }
    Ok(all)
}
