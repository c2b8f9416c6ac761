//! Networks that fail at random and independently, under load.
//!
//! `LOCKATTR_CHAOS_SECONDS=600 cargo test -p lockattr-tests --test it
//! engine_faults::redis::a_counter -- --nocapture` runs it for ten minutes. `LOCKATTR_SEED` repeats the
//! same faults.

#![allow(clippy::print_stdout, reason = "what is needed to reproduce a failed run")]

use std::time::Duration;

use lockattr_history::seed;
use lockattr_tests::{Engine, Wires, eventually, node};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep};

use super::Case;

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect(name))
}

/// A node that finds two holders at once exits with a message, and the test fails.
pub(super) async fn a_counter_of_three_processes_loses_nothing_while_their_networks_fail<
    E: Engine,
>(
    case: Case<'_, E>,
) {
    let seconds = env_number("LOCKATTR_CHAOS_SECONDS").unwrap_or(8);
    let mut random = StdRng::seed_from_u64(seed());
    let (mut networks, mut nodes) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let wires = Wires::before(case.engine).await;
        let url = wires.url_with(&format!("{}&{}", E::SHORT, E::QUICK));
        nodes.push(node!("work", url = url, key = case.key, resource = case.resource.path()));
        networks.push(wires);
    }
    for node in &mut nodes {
        assert_eq!(node.line().await, "ready");
    }
    let ends = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < ends {
        fault(&networks[random.random_range(0..3)], &mut random).await;
        sleep(Duration::from_millis(random.random_range(20..250))).await;
    }
    for network in &networks {
        network.pass().await;
    }
    let before = case.resource.count();
    eventually("after the faults a caller acquires", async || case.resource.count() > before).await;
    let mut added = 0;
    for node in &mut nodes {
        node.say("enough").await;
        let reply = node.line().await;
        let count = reply.strip_prefix("added ").and_then(|count| count.parse::<u64>().ok());
        added += count.unwrap_or_else(|| panic!("the node replied: {reply}"));
        assert!(node.finish().await.success());
    }
    println!("{added} turns in {seconds} s");
    assert_eq!(case.resource.count(), added);
    // A node may have ended before it read its last notification. The next holder cleans up.
    let next = case.manager().await;
    case.acquire(&next).await.release().await.unwrap();
    case.nothing_left().await;
}

async fn fault(wires: &Wires, random: &mut StdRng) {
    match random.random_range(0..10) {
        0 => wires.cut().await,
        1 => wires.swallow_replies(),
        2 => wires.swallow(),
        3 => wires.hold(),
        4 => wires.hold_replies(),
        5 => wires.delay(Duration::from_millis(random.random_range(1..50))),
        _ => wires.pass().await,
    }
}
