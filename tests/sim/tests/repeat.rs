//! The same seed gives the same world.

use lockattr_sim::{Plan, Topology, Wrong, run};

fn repeats(plan: &Plan) {
    let (once, again) = (run(plan, Wrong::Nothing), run(plan, Wrong::Nothing));
    let pairs = once.history.iter().zip(&again.history);
    let differ = pairs.enumerate().find(|(_, (one, other))| one != other);
    assert_eq!(differ, None, "{}", plan.name());
    assert_eq!(once.history.len(), again.history.len(), "{}", plan.name());
    assert_eq!(once.simulated, again.simulated, "{}", plan.name());
    assert_eq!(once.findings, again.findings, "{}", plan.name());
    assert_eq!(once.terms, again.terms, "{}", plan.name());
}

#[test]
fn the_same_seed_has_the_same_history_twice() {
    for topology in [Topology::Alone, Topology::Redlock] {
        (0..10).for_each(|seed| repeats(&Plan::draw(seed, topology)));
    }
}

#[test]
fn the_same_scene_has_the_same_history_twice() {
    (0..20).for_each(|seed| repeats(&Plan::scene(seed)));
}

#[test]
fn the_same_leaders_write_the_same_twice() {
    for topology in [Topology::Alone, Topology::Redlock] {
        (0..10).for_each(|seed| repeats(&Plan::leaders(seed, topology)));
    }
}
