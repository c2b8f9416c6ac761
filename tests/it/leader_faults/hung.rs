//! Leaders that hang: a body that awaits without end, or that blocks its thread.

use std::time::Duration;

use lockattr_tests::{Engine, eventually};
use tokio::time::sleep;

use super::Campaign;

/// Longer than a lease.
const WITHIN: Duration = Duration::from_secs(16);

/// Writes that take longer than a third of a lease: a leader pauses for 20 ms after each.
const RENEWED: usize = 300;

pub(super) async fn a_body_that_never_ends_its_await_is_replaced<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let campaign = campaign.progress_within(WITHIN);
    let (mut a, mut b) = (campaign.process(), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    a.node.say("hang").await;
    a.ends(first).await;
    let second = campaign.follows(&mut a, &mut b).await;
    assert!(second > first, "{second} after {first}");
    // It campaigns again, and reports progress in its next term.
    let third = campaign.hands_over(&mut b, &mut a, second).await;
    assert!(third > second, "{third} after {second}");
    a.goes_on(third, 3).await;
    campaign.over([b, a]).await;
}

/// The process has another thread, which does not renew for the silent body.
pub(super) async fn a_body_that_blocks_its_thread_is_replaced<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let campaign = campaign.progress_within(WITHIN);
    let (mut a, mut b) = (campaign.process(), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    a.node.say("block").await;
    let second = b.leads().await;
    b.goes_on(second, 3).await;
    // It writes before its next await, and is refused; then it is dropped.
    a.node.say("unblock").await;
    eventually("its thread goes on", async || a.refused(first) > 0).await;
    a.ends(first).await;
    b.goes_on(second, 3).await;
    campaign.over([a, b]).await;
}

/// Nothing renews, so the lease ends.
pub(super) async fn a_body_that_blocks_the_only_thread_is_replaced<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let campaign = campaign.progress_within(WITHIN);
    let (mut a, mut b) = (campaign.process_with_threads(0), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    // Its lease has been renewed, so the store keeps it for as long as the renewal asked for.
    a.goes_on(first, RENEWED).await;
    a.node.say("block").await;
    if E::OUTLIVES_ITS_CONNECTION {
        let second = b.leads().await;
        b.goes_on(second, 3).await;
        a.node.say("unblock").await;
        eventually("its thread goes on", async || a.refused(first) > 0).await;
        a.ends(first).await;
    } else {
        // The connection is the lock, and stays open while nothing of the process runs.
        sleep(WITHIN + Duration::from_secs(1)).await;
        a.node.say("unblock").await;
        a.ends(first).await;
        b.leads().await;
    }
    campaign.over([a, b]).await;
}
