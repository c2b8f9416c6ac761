//! Mistakes in counting: the search finds two holders, or a token that is not above those before.

use super::fault::Fault;
use super::mistake::Mistake;
use super::setting::Setting;
use super::settings::{LAGS, SECOND, W, with};
use crate::search::is_wrong;

/// A failover, for two claims.
const fn lagging(mistake: Mistake) -> Setting {
    Setting { mistake: Some(mistake), checks_absence: false, ..LAGS }
}

const CONFLICT: &str = "two hold that must not";
const TOKEN: &str = "a token is not above an earlier one";

/// Its token was counted before another claim acquired and released the lock.
#[test]
fn half_of_a_pair_that_is_sent_again() {
    let moves =
        Setting { claims: &[W, W], kinds: &[Fault::RedirectSet], ..with(Mistake::RetriesHalf) };
    is_wrong(&moves, TOKEN, 10);
}

#[test]
fn a_pair_whose_set_is_not_checked() {
    is_wrong(&Setting { faults: 0, ..with(Mistake::IgnoresTheSet) }, CONFLICT, 8);
}

#[test]
fn a_pair_that_is_answered_after_its_lease() {
    is_wrong(&Setting { faults: 0, ..with(Mistake::IgnoresTheLease) }, CONFLICT, 10);
}

#[test]
fn a_lease_that_is_passed_on_too_late() {
    let late = Setting { faults: 0, hand_offs: 1, ..with(Mistake::HandsOffTooLate) };
    is_wrong(&late, TOKEN, 10);
}

/// The replica has fewer tokens, and the process that had counted over the old connection
/// continues over the new one.
#[test]
fn a_new_connection_over_which_no_process_has_counted() {
    is_wrong(&lagging(Mistake::NewConnectionKeepsFlag), TOKEN, 6);
}

#[test]
fn a_connection_that_outlives_a_change_of_role() {
    let changes = Setting { kinds: &[Fault::RoleChange], ..lagging(Mistake::RoleKeepsFlag) };
    is_wrong(&changes, TOKEN, 5);
}

/// The late reply sets a flag that belongs to the process; or one that belongs to the connection,
/// if the connection survives. Small: leases and entries last one tick.
#[test]
fn a_late_answer_of_an_old_server_that_sets_the_flag() {
    let late = lagging(Mistake::LateAnswerSetsFlag);
    let small =
        Setting { claims: &[W, W, W], process: [0, 0, 1], ttl: 1, life: 1, kept: 1, ..late };
    is_wrong(&small, TOKEN, 12);
    is_wrong(&Setting { kinds: &[Fault::RoleChange], ..small }, TOKEN, 11);
}

/// The claim is queued behind another program's lock, so the script counts nothing.
#[test]
fn a_script_that_only_queued_and_sets_the_flag() {
    let kinds = &[Fault::Failover, Fault::Intrude];
    let queued = Setting { faults: 2, kinds, ..lagging(Mistake::QueuedSetsFlag) };
    is_wrong(&Setting { process: [0, 0, 0], ..queued }, TOKEN, 11);
}

/// A cluster, where each slot has its own counter.
#[test]
fn a_script_that_counted_in_another_slot_and_sets_the_flag() {
    let claims = &[W, SECOND];
    let slots = Setting { claims, slots: true, ..lagging(Mistake::OneFlagForAllCounters) };
    is_wrong(&Setting { process: [0; 3], ..slots }, TOKEN, 9);
}

/// A proxy hides the failover.
#[test]
fn a_token_that_its_process_has_seen_already() {
    let hides = Setting { kinds: &[Fault::Swap], ..lagging(Mistake::SeenUnchecked) };
    is_wrong(&Setting { process: [0, 0, 0], ..hides }, TOKEN, 5);
}

/// Not a mistake of the protocol, but its limit: behind such a proxy a process does not know which
/// tokens others have seen.
#[test]
fn a_proxy_that_hides_a_failover_from_two_processes() {
    is_wrong(&Setting { kinds: &[Fault::Swap], ..LAGS }, TOKEN, 8);
}

#[test]
fn a_token_of_a_lost_counter() {
    let forgets = Setting { kinds: &[Fault::Flush], ..with(Mistake::TokensUnchecked) };
    is_wrong(&forgets, TOKEN, 5);
}

#[test]
fn a_script_that_ignores_the_clock() {
    let forgets = Setting { kinds: &[Fault::Flush], ..with(Mistake::IgnoresTheClock) };
    is_wrong(&forgets, TOKEN, 5);
}
