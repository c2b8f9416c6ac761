//! Leases that the tasks have not seen yet, and which of them wake a task: with made-up instants,
//! without a store.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::NewLeases;
use crate::lease::{GrantedLease, LeaseState};
use crate::store::{Claim, LockKey};
use crate::{FencingToken, LostReason};

const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(30);

fn hold(requested_at: Instant, renew: bool) -> Arc<LeaseState> {
    let claim = Arc::new(Claim::new(LockKey::new("lock:", "a").unwrap(), ""));
    let fencing = FencingToken::from_counter(7);
    Arc::new(LeaseState::new(GrantedLease {
        claim,
        fencing,
        requested_at,
        ttl: TTL,
        renew,
        max_hold: None,
        progress_within: None,
    }))
}

/// Red without: the comparison in `watch`, or what `begin_check` or `set_asleep_until` stores.
#[test]
fn a_new_lease_wakes_the_tasks_only_if_it_is_due_before_all_others() {
    let new_leases = NewLeases::new();
    let now = Instant::now();
    let wakes =
        |requested_at, ttl| new_leases.watch(&hold(requested_at, true), requested_at, ttl).1;
    assert!(wakes(now, TTL), "they sleep for ever");
    new_leases.set_asleep_until(Some(now + TTL / 3));
    assert!(!wakes(now, TTL) && !wakes(now + SECOND, TTL));
    assert!(wakes(now, TTL / 2));
    new_leases.begin_check();
    assert!(wakes(now + SECOND, TTL), "a task checks, and may have passed this shard");
    new_leases.set_asleep_until(None);
    assert!(wakes(now + SECOND, TTL));
}

/// Red without: the removal in `forget`, the draining in `take`, or its order.
#[test]
fn a_lease_is_seen_once_and_only_if_it_is_still_held() {
    let (new_leases, now) = (NewLeases::new(), Instant::now());
    let ids: Vec<_> = (0..20).map(|_| new_leases.watch(&hold(now, true), now, TTL).0).collect();
    assert!(new_leases.forget(ids[1]));
    assert!(!new_leases.forget(ids[1]), "the lease is forgotten");
    let seen: Vec<_> = new_leases.take().iter().map(|lease| lease.id).collect();
    assert_eq!(seen, [&ids[..1], &ids[2..]].concat());
    assert!(!new_leases.forget(ids[0]), "the tasks have it");
    assert!(new_leases.take().is_empty());
}

/// Red without: any of the conditions in `hand_off`.
#[test]
fn a_lease_is_handed_off_unless_it_was_seen_or_has_to_be_renewed_now() {
    let (new_leases, now) = (NewLeases::new(), Instant::now());
    let (renewed, fixed) = (hold(now, true), hold(now, false));
    let [renewed_id, fixed_id] = [&renewed, &fixed].map(|hold| new_leases.watch(hold, now, TTL).0);
    let next = Arc::new(renewed.handed_off(renewed.fencing(), TTL, None, now + SECOND));
    assert!(new_leases.hand_off(renewed_id, &next));
    assert!(!new_leases.hand_off(fixed_id, &next));
    let [lease, _] = &new_leases.take()[..] else { panic!("two are watched") };
    assert!(Arc::ptr_eq(&lease.hold, &next));
    assert_eq!(lease.renew_at, Some(now + TTL / 3), "as it was before");
    assert!(!new_leases.hand_off(renewed_id, &next));
    let (id, _) = new_leases.watch(&renewed, now, TTL);
    new_leases.shut_down();
    assert!(!new_leases.hand_off(id, &next), "the queue signals it");
}

/// Red without: the check of `shut_down` in `watch`.
#[test]
fn after_a_shutdown_a_new_hold_is_lost_from_the_beginning() {
    let (new_leases, now) = (NewLeases::new(), Instant::now());
    let (first, late) = (hold(now, true), hold(now, true));
    new_leases.watch(&first, now, TTL);
    new_leases.shut_down();
    assert_eq!(first.check(now), Ok(()), "the shutdown itself signals it");
    new_leases.watch(&late, now, TTL);
    assert_eq!(late.check(now), Err(LostReason::ShutDown));
}
