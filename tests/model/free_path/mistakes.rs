//! Mistakes in the protocol: the search finds each.

use super::fault::Fault;
use super::mistake::Mistake;
use super::setting::Setting;
use super::settings::{BOTH, KEEPS, LAGS, R, SECOND, W, X, with};
use crate::search::is_wrong;

const CONFLICT: &str = "two hold that must not";
const OVERTAKEN: &str = "a living claim is overtaken";
const PLACE: &str = "a claim loses its place";
const DEAD: &str = "a claim is refused because of the dead";
const LEFT: &str = "something is left behind";

#[test]
fn a_lock_that_its_first_waiter_does_not_mark() {
    is_wrong(&Setting { faults: 0, ..with(Mistake::MarksNothing) }, OVERTAKEN, 9);
}

#[test]
fn a_mark_that_ends_with_its_lease() {
    is_wrong(&Setting { faults: 0, ..with(Mistake::MarkEndsWithLease) }, OVERTAKEN, 9);
}

/// The lease is longer than the life of a queue.
#[test]
fn a_mark_that_ends_with_its_queue() {
    let long = Setting { faults: 0, ttl: 4, life: 2, kept: 2, ..with(Mistake::MarkEndsWithQueue) };
    is_wrong(&long, CONFLICT, 13);
}

#[test]
fn a_renewal_that_forgets_the_queue() {
    let renews = Setting { faults: 0, renewals: 1, ..with(Mistake::RenewalForgetsQueue) };
    is_wrong(&renews, OVERTAKEN, 13);
}

#[test]
fn a_lock_that_is_kept_and_forgets_the_queue() {
    let claims = &[KEEPS, W, W];
    let keeps = Setting { claims, faults: 0, ..with(Mistake::KeepingForgetsQueue) };
    is_wrong(&keeps, OVERTAKEN, 13);
}

#[test]
fn a_shared_lock_that_forgets_the_queue() {
    let claims = &[R, W, W];
    is_wrong(&Setting { claims, faults: 0, ..with(Mistake::SetForgetsQueue) }, OVERTAKEN, 9);
}

#[test]
fn a_recheck_that_does_not_prolong_the_queue() {
    let looks = Setting { faults: 0, ttl: 4, renewals: 1, ..with(Mistake::RecheckProlongsNothing) };
    is_wrong(&looks, PLACE, 11);
}

/// It waits for two keys, one of which is free.
#[test]
fn a_claim_for_several_keys_that_reserves_nothing() {
    let claims = &[W, BOTH, SECOND];
    is_wrong(&Setting { claims, faults: 0, ..with(Mistake::ReservesNothing) }, OVERTAKEN, 7);
}

#[test]
fn a_mark_that_a_leaving_claim_removes() {
    let claims = &[X, X, X];
    is_wrong(&Setting { claims, faults: 0, ..with(Mistake::LeaverUnmarks) }, OVERTAKEN, 15);
}

/// The claim that leaves waited for a lock that another claim holds.
#[test]
fn a_last_claim_to_leave_that_frees_the_lock_of_another() {
    let claims = &[X, X, X];
    is_wrong(&Setting { claims, faults: 0, ..with(Mistake::LastFreesAnothers) }, CONFLICT, 13);
}

#[test]
fn a_reservation_that_passes_for_a_holder() {
    let quiet = Setting { faults: 0, quiet: true, ..with(Mistake::ReservationIsHeld) };
    is_wrong(&quiet, DEAD, 10);
}

#[test]
fn a_lean_release_that_mistakes_a_mark_for_a_loss() {
    is_wrong(&Setting { faults: 0, ..with(Mistake::NotEqualIsLost) }, LEFT, 7);
}

#[test]
fn a_renewal_that_mistakes_a_mark_for_a_loss() {
    let renews = Setting { faults: 0, renewals: 1, ..with(Mistake::MarkedIsLost) };
    is_wrong(&renews, "a holder is notified of the loss of a lock that it has", 9);
}

#[test]
fn a_quiet_release_that_leaves_nothing() {
    let quiet = Setting { faults: 0, quiet: true, ..with(Mistake::QuietLeavesNothing) };
    is_wrong(&quiet, OVERTAKEN, 10);
}

#[test]
fn a_last_sharer_that_leaves_nothing() {
    let claims = &[R, BOTH, W];
    let last = Setting { claims, faults: 0, ..with(Mistake::LastSharerLeavesNothing) };
    is_wrong(&Setting { quiet: true, ..last }, OVERTAKEN, 10);
    // The release is not quiet, but the head of the queue also waits for another key.
    let head = Setting { claims: &[R, BOTH, SECOND], checks_absence: true, ..last };
    is_wrong(&head, "a lock that has waiters is absent", 9);
}

#[test]
fn a_renewal_that_prunes() {
    let kinds = &[Fault::Stop];
    let claims = &[R, W, W];
    let prunes = Setting { claims, kinds, renewals: 1, ..with(Mistake::RenewalPrunes) };
    is_wrong(&prunes, OVERTAKEN, 13);
}

#[test]
fn a_read_that_prunes() {
    let claims = &[R, W, W];
    let reads = Setting { claims, faults: 0, reads: true, ..with(Mistake::ReadPrunes) };
    is_wrong(&reads, OVERTAKEN, 10);
}

#[test]
fn a_mark_whose_lease_is_read_from_its_key() {
    let kinds = &[Fault::Kill];
    let dead = Setting { kinds, ..with(Mistake::LeftFromExpiry) };
    is_wrong(&dead, DEAD, 10);
}

#[test]
fn a_foreign_lock_without_an_end_that_passes_for_one_that_is_over() {
    let kinds = &[Fault::IntrudeForever];
    let claims = &[W];
    is_wrong(&Setting { claims, kinds, ..with(Mistake::ForeverIsOver) }, CONFLICT, 5);
}

#[test]
fn a_script_that_does_not_adopt_what_a_pair_took() {
    let lost = Setting { kinds: &[Fault::RedirectIncrement], ..with(Mistake::AdoptsNothing) };
    is_wrong(&lost, "a claim is refused what it has", 5);
}

#[test]
fn a_renewal_that_shortens_a_lease() {
    let short =
        Setting { faults: 0, ttl: 1, renewals: 2, extended: 3, ..with(Mistake::RenewalShortens) };
    is_wrong(&short, CONFLICT, 14);
}

/// The request was given up, and arrives over an old connection after the lease was extended.
#[test]
fn an_adoption_that_shortens_a_lease() {
    let shortens = with(Mistake::AdoptionShortens);
    let extends = Setting { claims: &[W, W], renewals: 1, extended: 4, ..shortens };
    let kinds = &[Fault::Timeout];
    is_wrong(&Setting { kinds, in_order: false, may_leave: true, ..extends }, CONFLICT, 17);
}

#[test]
fn a_lease_that_no_replica_has() {
    let mistake = Some(Mistake::DoesNotWait);
    let fails = Setting { waits_for_replica: true, mistake, checks_absence: false, ..LAGS };
    is_wrong(&fails, CONFLICT, 4);
}
