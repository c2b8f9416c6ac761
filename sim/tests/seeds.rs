//! The runtime as it is, in a thousand worlds and more.
//!
//! `LOCKATTR_SIM_SEEDS=10000` runs that many of each sort, `LOCKATTR_SIM_SEED=17` one, and says what
//! goes wrong in it and all that its processes did.

use std::env;

use lockattr_sim::{Plan, Share, Topology, Wrong, run, seeds, sweep};

/// Worlds of each sort that are run always.
const USUAL: u64 = 520;

/// Seeds that found something once. They run always, with any number of others.
const FOUND: &[(Topology, u64)] = &[
    // A place in line of a process that died behind a partition: its server must notice some time.
    (Topology::Alone, 121),
    (Topology::Redlock, 25),
    // Two that shared had one fencing token: what `store/redlock/recount.rs` is for.
    (Topology::Redlock, 85),
    (Topology::Redlock, 96),
    (Topology::Redlock, 108),
];

fn runs(topology: Topology, nth: u64) {
    match sweep(seeds(USUAL), topology, Share { nth, of: 2 }) {
        Ok(figures) if figures.seeds > 0 => say(&format!("{topology:?}, share {nth}: {figures}")),
        Ok(_) => {}
        Err(report) => panic!("{report}"),
    }
    if env::var_os("LOCKATTR_SIM_SEED").is_some() {
        seeds(0).filter(|seed| seed % 2 == nth).for_each(|seed| tell(seed, topology));
    }
}

/// All that happens in one world.
fn tell(seed: u64, topology: Topology) {
    let plan = Plan::draw(seed, topology);
    say(&format!("{plan:#?}"));
    for event in run(&plan, Wrong::Nothing).history {
        let (at, process, chain, call) = (event.at, event.process, event.chain, event.call);
        let (ms, key, step) = (at / 1_000_000, event.key, event.step);
        say(&format!("{ms:>6} ms, process {process}, chain {chain}, call {call}: {key} {step:?}"));
    }
}

#[expect(clippy::print_stdout, reason = "figures, and the log of one seed")]
fn say(line: &str) {
    println!("{line}");
}

#[test]
fn one_server_in_even_worlds() {
    runs(Topology::Alone, 0);
}

#[test]
fn one_server_in_odd_worlds() {
    runs(Topology::Alone, 1);
}

#[test]
fn redlock_in_even_worlds() {
    runs(Topology::Redlock, 0);
}

#[test]
fn redlock_in_odd_worlds() {
    runs(Topology::Redlock, 1);
}

#[test]
fn worlds_that_found_something_once_find_nothing_now() {
    for &(topology, seed) in FOUND {
        if let Err(report) = sweep([seed], topology, Share { nth: 0, of: 1 }) {
            panic!("{report}");
        }
    }
}
