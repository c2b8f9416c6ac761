//! The runtime as it is, in a thousand worlds and more.
//!
//! `LOCKATTR_SIM_SEEDS=10000` runs that many of each sort, `LOCKATTR_SIM_SEED=17` one, and says what
//! goes wrong in it and all that its processes did.

use std::env;

use lockattr_sim::{Plan, Topology, Wrong, run, seeds, sweep};

/// Worlds of each sort that are run always.
const USUAL: u64 = 520;

/// Seeds that found something once. They run always, with any number of others. When what a seed
/// draws changes, the finding is made once more, and its seeds of then stand here.
const FOUND: &[(Topology, u64)] = &[
    // Two that shared had one fencing token: what `engines/redlock/agree_on_token.rs` is for.
    (Topology::Redlock, 96),
    (Topology::Redlock, 156),
    (Topology::Redlock, 184),
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

/// All that happens in one world.
fn tell(plan: &Plan) {
    say(&format!("{plan:#?}"));
    for event in run(plan, Wrong::Nothing).history {
        let (at, process, chain, call) = (event.at, event.process, event.chain, event.call);
        let (ms, key, step) = (at / 1_000_000, event.key, event.step);
        say(&format!("{ms:>6} ms, process {process}, chain {chain}, call {call}: {key} {step:?}"));
    }
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
