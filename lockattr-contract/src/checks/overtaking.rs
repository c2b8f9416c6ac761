//! A liberty that some stores take: a claim for several keys does not block others for a key that it
//! cannot acquire yet.

use tokio::time::Instant;

use super::several_keys::{OVERTAKEN, together};
use crate::subject::Subject;
use crate::waiter::Manager;

pub(crate) async fn a_claim_for_several_keys_is_overtaken_while_another_key_is_held(
    store: Subject,
) {
    let manager = Manager::on(&store);
    // Retry if this machine took longer than a claim may be overtaken.
    for n in 0..20 {
        let (a, b) = (format!("{n}:a"), format!("{n}:b"));
        let (holder_a, holder_b) = (manager.claim_for(&a), manager.claim_for(&b));
        let (both, single, hasty) =
            (together(&manager, &[&a, &b]), manager.claim_for(&a), manager.claim_for(&a));
        holder_a.acquire().await;
        holder_b.acquire().await;
        let began = Instant::now();
        both.enqueue().await;
        single.enqueue().await;
        holder_a.release().await;
        if began.elapsed() >= OVERTAKEN {
            continue;
        }
        single.wait_for_grant().await;
        assert!(!both.is_holder().await);
        // But it gets both as soon as both are free.
        holder_b.release().await;
        assert!(!both.is_holder().await);
        single.release().await;
        both.wait_for_grant().await;
        assert!(!hasty.try_acquire().await);
        return;
    }
    panic!("this machine is too slow to tell");
}
