//! The schedule of faults: drawn from the seed, separately for each process and for the servers.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::chance::{millis, one_of, stream};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attack<K> {
    /// After so long without any.
    pub(crate) after: Duration,
    pub(crate) kind: K,
    pub(crate) lasts: Duration,
    /// The random number by which the fault chooses a server, a slot or milliseconds.
    pub(crate) pick: usize,
}

/// A fault of one process, or of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Trouble {
    Killed,
    Stopped,
    /// Its wall clock jumps, by up to six hours.
    CalendarJumped,
    NetworkCut,
    NetworkSilent,
    RepliesHeld,
    RepliesSwallowed,
    AllSwallowed,
    NetworkSlow,
    /// Cuts the connection to one of several servers.
    OneWayCut,
    OneWaySilent,
}

/// A fault of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Harm {
    /// All of them are killed, and restarted with their data.
    Restarted,
    /// All of them are stopped.
    Frozen,
    /// One of several is killed, and restarted with its data.
    OneKilled,
    OneFrozen,
    /// The master is killed, another takes its place, and it comes back as a replica.
    FailedOver,
    /// The master is stopped until another may have taken its place.
    MasterFrozen,
    /// Another becomes the master although this one works.
    SwitchedOver,
    /// A slot with locks moves to another master.
    SlotMoved,
    /// The server ends all connections of its clients.
    ClientsKilled,
    /// The server forgets all scripts.
    ScriptsFlushed,
}

/// The faults of one target, in order, without an end.
pub(crate) fn attacks<K: Copy>(
    seed: u64,
    target: &str,
    kinds: &'static [K],
) -> impl Iterator<Item = Attack<K>> {
    let mut random = stream(seed, target);
    std::iter::from_fn(move || Some(attack(&mut random, kinds)))
}

fn attack<K: Copy>(random: &mut StdRng, kinds: &[K]) -> Attack<K> {
    let (after, kind) = (millis(random, 100..4500), one_of(random, kinds));
    // Most end before a lease of two seconds does, some later.
    let long = random.random_ratio(1, 4);
    let lasts = if long { millis(random, 1500..4500) } else { millis(random, 20..1500) };
    Attack { after, kind, lasts, pick: random.random_range(0..1 << 20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: &[Harm] = &[Harm::Restarted, Harm::Frozen, Harm::ClientsKilled];

    fn drawn(seed: u64, target: &str) -> Vec<Attack<Harm>> {
        attacks(seed, target, KINDS).take(50).collect()
    }

    #[test]
    fn the_same_seed_has_the_same_faults_and_another_seed_has_others() {
        assert_eq!(drawn(7, "servers"), drawn(7, "servers"));
        assert_ne!(drawn(7, "servers"), drawn(8, "servers"));
        assert_ne!(drawn(7, "servers"), drawn(7, "worker 0"));
    }

    #[test]
    fn every_kind_of_fault_occurs() {
        for kind in KINDS {
            assert!(drawn(1, "servers").iter().any(|attack| attack.kind == *kind), "{kind:?}");
        }
    }

    #[test]
    fn some_faults_outlast_a_lease_and_most_do_not() {
        let long = drawn(1, "servers").iter().filter(|it| it.lasts.as_secs() >= 2).count();
        assert!((1..25).contains(&long), "{long} of 50");
    }
}
