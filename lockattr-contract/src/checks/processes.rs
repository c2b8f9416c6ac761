//! Two processes: what one of them does, the other one sees.

use lockattr::store::{ReleaseOutcome, RenewOutcome};

use super::TTL;
use crate::subject::{Subject, acquired, is_acquired, release, renew};

pub(crate) async fn a_lock_excludes_other_processes(here: Subject) {
    let there = here.another_node();
    let (first, second) = (here.claim("two"), there.claim("two"));
    acquired(&here, &first, TTL).await;
    assert!(!is_acquired(&there, &second, TTL).await, "both processes have the lock");
    assert!(there.holder(second.key()).await.expect("an answer").is_some());
    assert_eq!(renew(&there, &second, TTL).await, RenewOutcome::NotHeld);
    assert_eq!(release(&there, &second).await, ReleaseOutcome::NotHeld);
    assert_eq!(renew(&here, &first, TTL).await, RenewOutcome::Renewed, "the other freed it");
    assert_eq!(release(&here, &first).await, ReleaseOutcome::Released);
    acquired(&there, &second, TTL).await;
    assert!(!is_acquired(&here, &first, TTL).await, "both processes have the lock");
}

pub(crate) async fn fencing_tokens_grow_across_processes(here: Subject) {
    let there = here.another_node();
    let mut last = None;
    for n in 0..20 {
        let node = if n % 2 == 0 { &here } else { &there };
        let claim = node.claim("turns");
        let token = acquired(node, &claim, TTL).await;
        assert!(Some(token) > last, "{token:?} after {last:?}");
        last = Some(token);
        release(node, &claim).await;
    }
}

/// A process that starts later must not begin to count anew.
pub(crate) async fn fencing_tokens_grow_for_a_process_that_starts_later(first: Subject) {
    let mut last = None;
    for n in 0..5 {
        let later = first.another_node();
        let claim = later.claim("later");
        let token = acquired(&later, &claim, TTL).await;
        assert!(Some(token) > last, "{token:?} after {last:?}, in process {n}");
        last = Some(token);
        release(&later, &claim).await;
    }
}
