//! Leaders and followers that are killed (`kill -9`) or stopped (SIGSTOP).

use lockattr_tests::{Engine, eventually};
use tokio::time::sleep;

use super::Campaign;

pub(super) async fn the_next_leads_when_the_lease_of_a_killed_leader_ends<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let (mut a, mut b) = (campaign.process(), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    campaign.sees(&mut b, a.id(), first).await;
    a.goes_on(first, 3).await;
    a.node.kill();
    let second = b.leads().await;
    assert!(second > first, "{second} after {first}");
    b.goes_on(second, 3).await;
    // A third process learns the new number, and not that of the dead leader.
    let mut c = campaign.process();
    c.starts().await;
    campaign.sees(&mut c, b.id(), second).await;
    let judged = campaign.over([c, b]).await;
    assert!(judged.leaders >= 2 && judged.refused == 0, "{judged:?}");
}

/// The place of the dead follower ends when the lease of the dead leader does, and not a TTL later.
pub(super) async fn the_next_but_one_leads_when_the_first_follower_is_killed_too<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let (mut a, mut b, mut c) = (campaign.process(), campaign.process(), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b, &mut c]).await;
    a.goes_on(first, 3).await;
    a.node.kill();
    b.node.kill();
    let second = c.leads().await;
    assert!(second > first, "{second} after {first}");
    c.goes_on(second, 3).await;
    let id = c.id();
    campaign.sees(&mut c, id, second).await;
    campaign.over([c]).await;
}

pub(super) async fn a_leader_stopped_past_its_lease_is_refused<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let (mut a, mut b) = (campaign.process(), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    a.node.say("stop").await;
    a.node.stands_still().await;
    if E::OUTLIVES_ITS_CONNECTION {
        let second = b.leads().await;
        b.goes_on(second, 1).await;
        a.node.continue_signal();
        a.ends(first).await;
        let what = "its write under the old number was refused";
        eventually(what, async || a.refused(first) > 0).await;
        b.goes_on(second, 3).await;
    } else {
        // No other process can tell that it is stopped. Only its own clock tells it afterwards.
        sleep(campaign.lease()).await;
        assert_eq!(a.refused(first), 0);
        a.node.continue_signal();
        a.ends(first).await;
        let second = b.leads().await;
        b.goes_on(second, 3).await;
    }
    campaign.over([a, b]).await;
}
