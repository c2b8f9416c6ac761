//! Companions: callers of one process that share a lock, of which one waited in the queue.

use lockattr::store::Sharing::{Permits, Shared};

use crate::subject::Subject;
use crate::waiter::Manager;

pub(crate) async fn a_companion_of_a_holder_enters_before_the_queue(store: Subject) {
    assert!(store.supports_companions(), "`supports_companions` is `false`");
    let (here, there) = (Manager::on(&store), Manager::on(&store));
    let [holder, plain, companion] = [(); 3].map(|()| here.claim_shared(&["room"], Shared));
    let companion = companion.companion_of(&holder);
    let alone = there.claim_for("room");
    holder.acquire().await;
    alone.enqueue().await;
    assert!(!plain.try_acquire().await, "a claim that could share the lock overtook the queue");
    assert!(companion.try_acquire().await, "the companion of a holder was refused");
    holder.release().await;
    assert!(!alone.is_holder().await, "the companion still holds the lock");
    companion.release().await;
    alone.wait_for_grant().await;
    alone.release().await;
}

pub(crate) async fn a_companion_of_a_claim_that_holds_nothing_waits(store: Subject) {
    let (here, there) = (Manager::on(&store), Manager::on(&store));
    let [left, holder, companion] = [(); 3].map(|()| here.claim_shared(&["left"], Shared));
    let companion = companion.companion_of(&left);
    let alone = there.claim_for("left");
    left.acquire().await;
    holder.acquire().await;
    alone.enqueue().await;
    left.release().await;
    assert!(!companion.try_acquire().await, "its companion had released the lock");
    holder.release().await;
    alone.wait_for_grant().await;
    alone.release().await;
}

pub(crate) async fn a_companion_gets_no_more_permits_than_there_are(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two, more] = [(); 3].map(|()| manager.claim_shared(&["permits"], Permits(2)));
    let (two, more) = (two.companion_of(&one), more.companion_of(&one));
    one.acquire().await;
    assert!(two.try_acquire().await);
    assert!(!more.try_acquire().await, "three holders of two permits");
}
