//! Wrong servers, wrong clients, a wrong quorum: each is found within a few seeds, in the same
//! worlds in which the real runtime passes.

use lockattr_sim::{Habit, InjectedBug, Plan, Scene, Topology, Wrong, run};

/// How many worlds may pass before the mistake counts as not found.
const WITHIN: u64 = 120;

/// Runs worlds until the mistake is found, with a report that contains `fits`.
fn found(wrong: Wrong, topology: Topology, fits: &str) {
    found_among((0..WITHIN).map(|seed| Plan::draw(seed, topology)), wrong, fits);
}

#[expect(clippy::print_stdout, reason = "the label of the counterexample")]
fn found_among(plans: impl Iterator<Item = Plan>, wrong: Wrong, fits: &str) {
    let mut other = String::new();
    for plan in plans {
        let Err(report) = run(&plan, wrong).judge() else { continue };
        let label = report.lines().find(|line| line.contains(fits));
        if let Some(label) = label {
            println!("{wrong:?}: {} found {label}", plan.name());
            return;
        }
        other.push_str(&report);
    }
    panic!("{wrong:?} is not found by `{fits}`, but by:\n{other}");
}

#[test]
fn a_server_that_lets_any_client_release_is_found() {
    found(
        Wrong::Servers(InjectedBug::ReleasesForAnyClient),
        Topology::Alone,
        "two holders at once",
    );
}

#[test]
fn a_server_that_forgets_to_expire_is_found() {
    found(Wrong::Servers(InjectedBug::ForgetsToExpire), Topology::Alone, "is held by");
}

#[test]
fn a_server_that_grants_twice_is_found() {
    found(Wrong::Servers(InjectedBug::GrantsTwice), Topology::Alone, "two holders at once");
}

#[test]
fn a_server_that_counts_backwards_is_found() {
    found(Wrong::Servers(InjectedBug::CountsBackwards), Topology::Alone, "fencing token later");
}

#[test]
fn servers_whose_leases_end_early_are_found() {
    found(Wrong::Servers(InjectedBug::ExpiresEarly), Topology::Redlock, "two holders at once");
}

#[test]
fn a_client_that_dates_a_grant_by_its_message_is_found() {
    found(Wrong::Clients(Habit::DatesGrantsLate), Topology::Alone, "two holders at once");
}

#[test]
fn a_client_that_treats_silence_as_a_renewal_is_found() {
    found(Wrong::Clients(Habit::TreatsSilenceAsYes), Topology::Alone, "two holders at once");
}

#[test]
fn a_quorum_of_two_of_five_is_found() {
    found(Wrong::SmallQuorum, Topology::Redlock, "two holders at once");
}

#[test]
fn lost_updates_under_the_lock_are_found_too() {
    found(Wrong::SmallQuorum, Topology::Redlock, "an update is lost");
}

fn scenes(scene: Scene) -> impl Iterator<Item = Plan> {
    (0..WITHIN).map(Plan::scene).filter(move |plan| plan.scene == Some(scene))
}

#[test]
fn a_server_that_keeps_waiters_of_dead_processes_is_found() {
    let wrong = Wrong::Servers(InjectedBug::KeepsDeadWaiters);
    found_among(scenes(Scene::WaitersLeave), wrong, "starves");
}

#[test]
fn a_server_that_frees_late_is_found() {
    let wrong = Wrong::Servers(InjectedBug::FreesLate);
    found_among(scenes(Scene::CallersAreDropped), wrong, "starves");
}

#[test]
fn a_client_that_treats_a_busy_server_as_unreachable_is_found() {
    found(Wrong::Clients(Habit::TreatsBusyAsGone), Topology::Alone, "gets a store error");
}
