//! Leaders in simulated worlds (`plan/leaders.rs`): with kills, stops, cuts, and calendars that are
//! wrong by hours.
//!
//! `LOCKATTR_SIM_SEEDS=10000` and `LOCKATTR_SIM_SEED=17` work as in `seeds.rs`.

use std::collections::BTreeSet;
use std::env;

use lockattr_history::{TermEvent, TermStep};
use lockattr_sim::{Figures, Plan, Topology, Wrong, run, seeds, sweep};

/// The number of worlds of each kind that always run.
const USUAL: u64 = 75;

/// How many worlds show all that leaders do.
const ENOUGH: u64 = 60;

fn run_worlds(topology: Topology) {
    let plans = || seeds(USUAL).map(|seed| Plan::leaders(seed, topology));
    if env::var_os("LOCKATTR_SIM_SEED").is_some() {
        plans().for_each(|plan| tell(&plan));
    }
    match sweep(plans()) {
        Ok(figures) => {
            say(&format!("leaders over {topology:?}: {figures}"));
            expect_much(&figures);
        }
        Err(report) => panic!("{report}"),
    }
}

/// Many worlds must show something of each kind, or they show nothing.
fn expect_much(figures: &Figures) {
    let Figures { seeds, terms, replaced, .. } = figures;
    let rare = [terms.refused, replaced.killed, replaced.silent, replaced.over];
    if *seeds >= ENOUGH {
        assert!(terms.terms > 2 * seeds && rare.iter().all(|many| *many > 0), "{figures}");
        let judged = replaced.killed + replaced.silent + replaced.over;
        assert!(judged > seeds / 4, "{judged} leaders were seen to be replaced: {figures}");
    }
}

/// Prints what leaders write in this world.
fn tell(plan: &Plan) {
    say(&format!("{plan:#?}"));
    let outcome = run(plan, Wrong::Nothing);
    say(&outcome.events());
    for (key, events) in outcome.terms {
        for (nth, event) in events.iter().enumerate() {
            say(&format!("{key}, event {nth}: {event:?}"));
        }
    }
}

#[expect(clippy::print_stdout, reason = "figures, and the log of one world")]
fn say(line: &str) {
    println!("{line}");
}

#[test]
fn terms_over_one_server_never_interleave() {
    run_worlds(Topology::Alone);
}

#[test]
fn terms_over_redlock_never_interleave() {
    run_worlds(Topology::Redlock);
}

/// What leaders did, except for the numbers of their terms: these follow the calendars. Instead,
/// each term has its place among all.
fn deeds(plan: &Plan) -> Vec<(&'static str, u32, usize, TermStep)> {
    let mut deeds = Vec::new();
    for (key, events) in run(plan, Wrong::Nothing).terms {
        let terms: BTreeSet<u64> = events.iter().map(|event| event.term).collect();
        let place = |term: u64| terms.range(..term).count();
        let deed = |event: &TermEvent| (key, event.process, place(event.term), event.step);
        deeds.extend(events.iter().map(deed));
    }
    deeds
}

/// Each difference would be a place where a lease or a campaign depends on a calendar.
#[test]
fn leaders_do_the_same_whatever_the_calendars_of_processes_and_their_server() {
    let mut jumps = 0;
    for plan in seeds(USUAL).take(25).map(|seed| Plan::leaders(seed, Topology::Alone)) {
        let right = plan.clone().with_right_calendars();
        jumps += plan.faults.len() - right.faults.len();
        assert_eq!(deeds(&plan), deeds(&right), "{}", plan.name());
    }
    say(&format!("{jumps} jumps changed nothing"));
}
