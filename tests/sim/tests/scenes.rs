//! The real runtime in worlds with a scene (`plan/scene.rs`).
//!
//! `LOCKATTR_SIM_SEEDS=10000` and `LOCKATTR_SIM_SEED=17` work as in `seeds.rs`.

use std::env;

use lockattr_sim::{Plan, Scene, Wrong, run, seeds, sweep};

/// The number of scenes of all kinds that always run.
const USUAL: u64 = 150;

fn run_part(scene: Scene) {
    let plans = || seeds(USUAL).map(Plan::scene).filter(|plan| plan.scene == Some(scene));
    if env::var_os("LOCKATTR_SIM_SEED").is_some() {
        plans().for_each(|plan| tell(&plan));
    }
    match sweep(plans()) {
        Ok(figures) => say(&format!("{scene:?}: {figures}")),
        Err(report) => panic!("{report}"),
    }
}

/// Prints what the processes do in this scene, and when.
fn tell(plan: &Plan) {
    say(&format!("{plan:#?}"));
    say(&run(plan, Wrong::Nothing).events());
}

#[expect(clippy::print_stdout, reason = "figures, and the log of one scene")]
fn say(line: &str) {
    println!("{line}");
}

#[test]
fn a_process_that_is_gone_costs_no_more_than_its_lease_however_many_waiters_it_had() {
    run_part(Scene::WaitersLeave);
}

#[test]
fn a_crowd_that_gives_up_at_once_sees_no_outage() {
    run_part(Scene::ACrowdGivesUp);
}

#[test]
fn a_caller_that_is_dropped_while_the_lock_is_handed_to_it_keeps_nothing() {
    run_part(Scene::CallersAreDropped);
}
