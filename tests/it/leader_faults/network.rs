//! The network of one process fails, while all others keep theirs.

use lockattr_tests::{Engine, Wires};

use super::Campaign;

/// Writes that take longer than a lease: a leader pauses for 20 ms after each.
const LONGER_THAN_A_LEASE: usize = 800;

pub(super) async fn a_short_cut_ends_no_term<E: Engine>(campaign: Campaign<'_, E>) {
    let wires = Wires::before(campaign.engine).await;
    let (mut a, mut b) = (campaign.process_over(&wires), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    for _ in 0..2 {
        wires.cut().await;
        wires.pass().await;
        if !E::OUTLIVES_ITS_CONNECTION {
            // The connection is the lock.
            a.ends(first).await;
            campaign.follows(&mut a, &mut b).await;
            campaign.over([a, b]).await;
            return;
        }
        a.goes_on(first, 3).await;
    }
    // Past the end of the lease that was last renewed before the cuts.
    a.goes_on(first, LONGER_THAN_A_LEASE).await;
    campaign.hands_over(&mut a, &mut b, first).await;
    let judged = campaign.over([a, b]).await;
    assert_eq!(judged.refused, 0);
}

pub(super) async fn a_leader_that_is_cut_off_is_dropped_before_the_next_writes<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let wires = Wires::before(campaign.engine).await;
    let (mut a, mut b) = (campaign.process_over(&wires), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    wires.cut().await;
    let second = b.leads().await;
    a.ends(first).await;
    b.goes_on(second, 3).await;
    wires.pass().await;
    // The network is back, and it follows.
    let third = campaign.hands_over(&mut b, &mut a, second).await;
    assert!(third > second, "{third} after {second}");
    let judged = campaign.over([b, a]).await;
    assert!(judged.refused == 0 || !E::OUTLIVES_ITS_CONNECTION, "{judged:?}");
}

pub(super) async fn a_leader_whose_network_swallows_everything_is_replaced<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    swallowed(campaign, Wires::swallow).await;
}

/// The servers execute what it sends, and see that it lives.
pub(super) async fn a_leader_whose_replies_are_swallowed_is_replaced<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    swallowed(campaign, Wires::swallow_replies).await;
}

async fn swallowed<E: Engine>(campaign: Campaign<'_, E>, swallow: fn(&Wires)) {
    let wires = Wires::before(campaign.engine).await;
    let (mut a, mut b) = (campaign.process_over(&wires), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    swallow(&wires);
    a.ends(first).await;
    if !E::OUTLIVES_ITS_CONNECTION {
        // The server frees this lock only when its connection ends, so the network must come back first.
        wires.pass().await;
    }
    // Where a session counts, the process tries to end it for as long as it lasts.
    let second = b.leads().await;
    b.goes_on(second, 3).await;
    wires.pass().await;
    campaign.sees_follow(&mut a, b.id()).await;
    let judged = campaign.over([a, b]).await;
    assert_eq!(judged.refused, 0);
}

/// It received no notification. It is granted its turn, or asks again.
pub(super) async fn a_follower_that_was_cut_off_leads_when_its_turn_comes<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let wires = Wires::before(campaign.engine).await;
    let (mut a, mut b) = (campaign.process(), campaign.process_over(&wires));
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    wires.cut().await;
    a.resigns(first).await;
    // No other process can campaign, so it may lead again: a leader that resigned comes last, and not never.
    let second = a.leads().await;
    wires.pass().await;
    campaign.sees_follow(&mut b, a.id()).await;
    a.node.kill();
    let third = b.leads().await;
    assert!(second > first && third > second, "{first}, {second}, {third}");
    b.goes_on(third, 3).await;
    let id = b.id();
    campaign.sees(&mut b, id, third).await;
    campaign.over([b]).await;
}
