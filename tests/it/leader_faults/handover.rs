//! Leaders that resign, and processes that shut down.

use lockattr_tests::{Engine, Wires, eventually};

use super::Campaign;

pub(super) async fn a_leader_that_resigns_is_followed_at_once<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let (mut a, mut b) = (campaign.process(), campaign.process());
    let mut last = campaign.begins(&mut [&mut a, &mut b]).await;
    // Those that wait come first, so the two take turns.
    let (mut old, mut new) = (&mut a, &mut b);
    for _ in 0..4 {
        old.goes_on(last, 3).await;
        let next = campaign.hands_over(old, new, last).await;
        assert!(next > last, "{next} after {last}");
        last = next;
        (old, new) = (new, old);
    }
    let judged = campaign.over([b, a]).await;
    assert!(judged.terms >= 5 && judged.refused == 0, "{judged:?}");
}

/// The renewal has no reply yet, and comes back when the lock is another leader's.
pub(super) async fn a_leader_that_resigns_during_a_renewal_is_followed_at_once<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let wires = Wires::before(campaign.engine).await;
    let (mut a, mut b) = (campaign.process_over(&wires), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    wires.hold_replies();
    let before = wires.came();
    eventually("it renews", async || wires.came() > before).await;
    a.resigns(first).await;
    wires.pass().await;
    let second = campaign.follows(&mut a, &mut b).await;
    assert!(second > first, "{second} after {first}");
    b.goes_on(second, 3).await;
    campaign.over([a, b]).await;
}

/// It may have its note still. With `lock=session` a connection can hold that and other locks, and would be ended with it.
pub(super) async fn a_new_leader_leaves_the_other_locks_of_the_last_one_alone<E: Engine>(
    campaign: Campaign<'_, E>,
) {
    let (last, note, others) = campaign.note_and_other_locks().await;
    let mut next = campaign.process();
    next.starts().await;
    let term = next.leads().await;
    let id = next.id();
    campaign.sees(&mut next, id, term).await;
    next.goes_on(term, 50).await;
    for other in others {
        let key = other.key().to_owned();
        other.release().await.unwrap_or_else(|error| panic!("`{key}` was lost: {error}"));
    }
    drop(note);
    last.shutdown().await;
    campaign.over([next]).await;
}

pub(super) async fn a_shutdown_ends_the_campaign<E: Engine>(campaign: Campaign<'_, E>) {
    let (mut a, mut b) = (campaign.process(), campaign.process());
    let first = campaign.begins(&mut [&mut a, &mut b]).await;
    a.goes_on(first, 3).await;
    a.node.say("shutdown").await;
    a.ends(first).await;
    let over = a.node.line().await;
    assert!(over.starts_with("over ") && over.contains("shut"), "{over}");
    let second = b.leads().await;
    // A follower that shuts down leaves its place.
    let mut c = campaign.process();
    c.starts().await;
    campaign.sees_follow(&mut c, b.id()).await;
    c.node.say("shutdown").await;
    let over = c.node.line().await;
    assert!(over.starts_with("over ") && over.contains("shut"), "{over}");
    b.goes_on(second, 3).await;
    campaign.over([a, c, b]).await;
}
