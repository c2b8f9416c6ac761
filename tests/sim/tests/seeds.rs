//! The real runtime in more than a thousand worlds.
//!
//! `LOCKATTR_SIM_SEEDS=10000` runs that many of each kind. `LOCKATTR_SIM_SEED=17` runs one, and
//! prints its faults and all that its processes did.

use std::env;

use lockattr_sim::{Plan, Topology, Wrong, run, seeds, sweep};

/// The number of worlds of each kind that always run.
const USUAL: u64 = 520;

/// Seeds that once found a bug. They always run, besides any others. If what a seed draws changes,
/// reproduce the bug, and list its new seeds here.
const FOUND: &[(Topology, u64)] = &[
    // Two claims that shared a lock had the same fencing token; `engines/redlock/agree_on_token.rs`
    // prevents that.
    (Topology::Redlock, 96),
    (Topology::Redlock, 156),
    (Topology::Redlock, 184),
    // Two pauses of a process counted as its wait.
    (Topology::Redlock, 3_419_671_926),
];

fn runs(what: &str, usual: u64, nth: u64, draw: impl Fn(u64) -> Plan) {
    let share = || seeds(usual).filter(|seed| seed % 2 == nth).map(&draw);
    match sweep(share()) {
        Ok(figures) if figures.seeds > 0 => say(&format!("{what}, share {nth}: {figures}")),
        Ok(_) => {}
        Err(report) => panic!("{report}"),
    }
    if env::var_os("LOCKATTR_SIM_SEED").is_some() {
        share().for_each(|plan| tell(&plan));
    }
}

/// Prints all that happens in one world.
fn tell(plan: &Plan) {
    say(&format!("{plan:#?}"));
    say(&run(plan, Wrong::Nothing).events());
}

#[expect(clippy::print_stdout, reason = "figures, and the log of one seed")]
fn say(line: &str) {
    println!("{line}");
}

fn alone(seed: u64) -> Plan {
    Plan::draw(seed, Topology::Alone)
}

fn redlock(seed: u64) -> Plan {
    Plan::draw(seed, Topology::Redlock)
}

#[test]
fn one_server_in_even_worlds() {
    runs("one server", USUAL, 0, alone);
}

#[test]
fn one_server_in_odd_worlds() {
    runs("one server", USUAL, 1, alone);
}

#[test]
fn redlock_in_even_worlds() {
    runs("redlock", USUAL, 0, redlock);
}

#[test]
fn redlock_in_odd_worlds() {
    runs("redlock", USUAL, 1, redlock);
}

#[test]
fn worlds_that_found_something_once_find_nothing_now() {
    if let Err(report) = sweep(FOUND.iter().map(|&(topology, seed)| Plan::draw(seed, topology))) {
        panic!("{report}");
    }
}
