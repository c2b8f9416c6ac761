//! Mistakes in the protocol: the search finds each.

use super::setting::{Fault, Mistake, Setting};
use super::settings::{BOTH, P, PLAIN, R, READS_BOTH, READS_SECOND, W, X, with};
use crate::claims::wait::ENDLESS;
use crate::search::{explore, is_wrong};

/// A writer that no longer asks waits behind a reader, and no new reader gets in.
#[test]
fn entries_that_never_end() {
    let kinds = &[Fault::Kill];
    let dead = Setting { claims: &[W, R, R], kinds, ..with(Mistake::EntriesNeverEnd) };
    is_wrong(&dead, "a claim is refused because of the dead", 17);
}

/// The process drops the grant of a claim that was given up, and does not undo it.
#[test]
fn a_release_that_is_sent_once() {
    let lost = Setting { kinds: &[Fault::LoseUndone], ..with(Mistake::UndoesOnce) };
    is_wrong(&lost, "something is left behind", 4);
}

#[test]
fn a_request_that_does_not_adopt_an_earlier_grant() {
    let lost = Setting { kinds: &[Fault::Timeout], ..with(Mistake::AdoptsNothing) };
    is_wrong(&lost, "a claim is refused what it has", 6);
}

#[test]
fn a_recheck_that_does_not_renew_the_entry() {
    let looks = Setting { faults: 0, ttl: 3, life: 2, ..with(Mistake::RecheckRenewsNothing) };
    is_wrong(&looks, "a living claim is dropped", 11);
}

#[test]
fn a_recheck_that_moves_the_entry_to_the_end() {
    let looks = Setting { faults: 0, ..with(Mistake::RecheckMovesToTheEnd) };
    is_wrong(&looks, "a claim loses its place", 10);
}

#[test]
fn a_release_that_does_not_serve() {
    let releases = Setting { faults: 0, ..with(Mistake::ReleaseServesNothing) };
    is_wrong(&releases, "a claim is not served though it could be", 6);
}

#[test]
fn a_request_that_is_granted_past_the_queue() {
    let asks = Setting { faults: 0, ..with(Mistake::Overtakes) };
    is_wrong(&asks, "a living claim is overtaken", 8);
}

/// It is behind a claim for one of its keys, and first in the queue of the other.
#[test]
fn a_claim_for_several_keys_that_is_first_in_one_queue_only() {
    let one = Setting { claims: &[W, BOTH, BOTH], faults: 0, ..with(Mistake::OneQueueIsEnough) };
    is_wrong(&one, "a living claim is overtaken", 8);
}

/// Two claims for the same two keys, each first in one queue: neither is ever granted.
#[test]
fn a_lapsed_entry_that_keeps_its_place_in_one_queue() {
    let claims = &[BOTH, BOTH, W];
    let lapsed = Setting { claims, faults: 0, ..with(Mistake::LapsedKeepsPlace) };
    assert_eq!(explore(&lapsed).longest_wait(&lapsed), ENDLESS, "ticks");
}

#[test]
fn a_lease_that_is_counted_from_the_receipt_of_its_grant() {
    let late = Setting { faults: 0, claims: &[W, W], ..with(Mistake::CountsFromReceipt) };
    is_wrong(&late, "two hold that must not", 8);
}

/// Two claims of a process that stops: the lease of the second ends a TTL after that of the first,
/// instead of a TTL after the last requests of both.
#[test]
fn a_grant_that_lasts_a_whole_ttl() {
    let claims = &[W, R, W];
    let grants = with(Mistake::GrantsLastATtl);
    let stopped = Setting { claims, faults: 2, kinds: &[Fault::Stop], ttl: 2, life: 2, ..grants };
    assert_eq!(explore(&stopped).longest_wait(&stopped), 3, "ticks, instead of 2");
}

/// The request was on its way when its process learned of the grant, and arrived after the lease.
#[test]
fn a_release_that_leaves_the_entry_of_an_unanswered_request() {
    let late = Setting { kinds: &[Fault::Timeout], ..with(Mistake::ReleaseLeavesEntries) };
    is_wrong(&late, "something is left behind", 16);
}

/// The claim asked again meanwhile, and is in the queue again.
#[test]
fn a_grant_that_is_older_than_a_refusal() {
    let evicted = Setting { kinds: &[Fault::Evict], ..with(Mistake::OldGrantCounts) };
    is_wrong(&evicted, "something is left behind", 16);
}

/// The claim was undone before its request arrived, over another connection.
#[test]
fn a_request_that_arrives_after_its_release() {
    is_wrong(&Setting { claims: &[X], in_order: false, ..PLAIN }, "something is left behind", 4);
}

/// A request that is granted after a lease has expired does not serve those behind it which could
/// share the lock. They acquire it when they ask again.
#[test]
fn a_request_that_is_granted_and_serves_no_other() {
    let strict = Setting { faults: 0, each_request_serves: true, ..PLAIN };
    for claims in [&[W, R, R], &[P, P, P]] {
        let not_served = "a claim is not served though it could be";
        is_wrong(&Setting { claims, ..strict }, not_served, 11);
    }
}

/// Readers of several keys leave the queues of all of them, of which only some are served. The
/// readers behind them acquire the others when they ask again.
#[test]
fn a_grant_of_several_keys_that_serves_one_queue() {
    let claims = &[W, READS_BOTH, READS_SECOND];
    let strict = Setting { claims, faults: 0, each_request_serves: true, ..PLAIN };
    is_wrong(&strict, "a claim is not served though it could be", 10);
}
