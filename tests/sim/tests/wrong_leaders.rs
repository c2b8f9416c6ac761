//! Wrong servers, wrong clients and a wrong quorum in worlds with leaders: each is found by what the
//! resources of the leaders recorded, within a few seeds, in the same worlds in which the real
//! runtime passes.

use lockattr_sim::{Habit, InjectedBug, Plan, Topology, Wrong, run};

/// How many worlds may pass before the mistake counts as not found.
const WITHIN: u64 = 120;

const REFUSED: &str = "a leader that held its lease was refused";

/// Runs worlds until the mistake is found, with a report that contains `fits`.
fn found(wrong: Wrong, topology: Topology, fits: &str) {
    found_if(wrong, topology, fits, |_| true);
}

/// The same for a mistake that only a wrong calendar shows: the same world with right calendars does
/// not find it.
fn found_by_calendars(wrong: Wrong, topology: Topology, fits: &str) {
    found_if(wrong, topology, fits, |plan| {
        run(&plan.with_right_calendars(), wrong).judge().is_ok()
    });
}

#[expect(clippy::print_stdout, reason = "the label of the counterexample")]
fn found_if(wrong: Wrong, topology: Topology, fits: &str, counts: impl Fn(Plan) -> bool) {
    let mut other = String::new();
    for plan in (0..WITHIN).map(|seed| Plan::leaders(seed, topology)) {
        let Err(report) = run(&plan, wrong).judge() else { continue };
        let label = report.lines().find(|line| line.contains(fits));
        if let Some(label) = label.filter(|_| counts(plan.clone())) {
            println!("{wrong:?}: {} found {label}", plan.name());
            return;
        }
        other.extend(report.lines().take(3).map(|line| format!("{line}\n")));
    }
    panic!("{wrong:?} is not found by `{fits}`, but by:\n{other}");
}

#[test]
fn a_server_that_grants_twice_is_found() {
    found(Wrong::Servers(InjectedBug::GrantsTwice), Topology::Alone, REFUSED);
}

#[test]
fn a_server_that_lets_any_client_release_is_found() {
    found(Wrong::Servers(InjectedBug::ReleasesForAnyClient), Topology::Alone, REFUSED);
}

#[test]
fn a_server_that_counts_backwards_is_found() {
    let wrong = Wrong::Servers(InjectedBug::CountsBackwards);
    found(wrong, Topology::Alone, REFUSED);
    found(wrong, Topology::Alone, "a process led in an earlier term");
}

#[test]
fn servers_whose_leases_end_early_are_found() {
    found(Wrong::Servers(InjectedBug::ExpiresEarly), Topology::Redlock, REFUSED);
}

#[test]
fn a_client_that_dates_a_grant_by_its_message_is_found() {
    found(Wrong::Clients(Habit::DatesGrantsLate), Topology::Alone, REFUSED);
}

#[test]
fn a_client_that_treats_silence_as_a_renewal_is_found() {
    found(Wrong::Clients(Habit::TreatsSilenceAsYes), Topology::Alone, REFUSED);
}

#[test]
fn a_quorum_of_two_of_five_is_found() {
    found(Wrong::SmallQuorum, Topology::Redlock, REFUSED);
}

#[test]
fn a_server_that_counts_by_its_calendar_is_found_by_wrong_calendars() {
    found_by_calendars(Wrong::Servers(InjectedBug::CountsByCalendar), Topology::Alone, REFUSED);
}

#[test]
fn a_server_whose_leases_end_by_its_calendar_is_found_by_wrong_calendars() {
    found_by_calendars(Wrong::Servers(InjectedBug::ExpiresByCalendar), Topology::Alone, REFUSED);
}

#[test]
fn a_client_that_dates_a_grant_by_its_calendar_is_found_by_wrong_calendars() {
    found_by_calendars(Wrong::Clients(Habit::DatesGrantsByCalendar), Topology::Alone, REFUSED);
}

#[test]
fn a_server_that_frees_late_is_found() {
    found(Wrong::Servers(InjectedBug::FreesLate), Topology::Alone, "ended its term at");
}

#[test]
fn a_server_that_forgets_to_expire_is_found() {
    let wrong = Wrong::Servers(InjectedBug::ForgetsToExpire);
    found(wrong, Topology::Alone, "has no leader");
    found(wrong, Topology::Alone, "was killed at");
}
