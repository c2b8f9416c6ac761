//! The same seed is the same world.

use lockattr_sim::{Plan, Topology, Wrong, run};

#[test]
fn the_same_seed_has_the_same_history_twice() {
    for topology in [Topology::Alone, Topology::Redlock] {
        for seed in 0..10 {
            let plan = Plan::draw(seed, topology);
            let (once, again) = (run(&plan, Wrong::Nothing), run(&plan, Wrong::Nothing));
            let pairs = once.history.iter().zip(&again.history);
            let differ = pairs.enumerate().find(|(_, (one, other))| one != other);
            assert_eq!(differ, None, "seed {seed} of {topology:?}");
            assert_eq!(once.history.len(), again.history.len(), "seed {seed} of {topology:?}");
            assert_eq!(once.simulated, again.simulated, "seed {seed} of {topology:?}");
        }
    }
}
