//! A writer that becomes a reader, and admits others.

use lockattr::store::Sharing::Shared;

use crate::subject::Subject;
use crate::waiter::Manager;

pub(crate) async fn a_renewal_makes_an_exclusive_lock_a_shared_one(store: Subject) {
    assert!(store.supports_downgrade(), "`supports_downgrade` is `false`");
    let manager = Manager::on(&store);
    let (writer, alone) = (manager.claim_for("page"), manager.claim_for("page"));
    let [early, reader] = [(); 2].map(|()| manager.claim_shared(&["page"], Shared));
    let (fencing, _) = writer.acquire().await;
    assert!(!early.try_acquire().await);
    writer.claim.share();
    assert!(!early.try_acquire().await, "the lock is exclusive until the renewal");
    assert!(writer.is_holder().await, "the store knows the claim by its token");
    let (next, _) = reader.acquire().await;
    assert!(next > fencing, "{next:?} after {fencing:?}");
    assert!(!alone.try_acquire().await);
    assert!(writer.is_holder().await && reader.is_holder().await);
    assert!(writer.release().await && reader.release().await);
    assert!(alone.try_acquire().await);
}

pub(crate) async fn waiting_readers_are_granted_what_a_writer_shares(store: Subject) {
    let manager = Manager::on(&store);
    let writer = manager.claim_for("waits");
    let reader = manager.claim_shared(&["waits"], Shared);
    writer.acquire().await;
    reader.enqueue().await;
    writer.claim.share();
    assert!(writer.is_holder().await);
    reader.wait_for_grant().await;
    assert!(writer.is_holder().await, "both hold it");
}
