//! The gate of an entry: exclusive children are never inside with others, children that share may
//! be.
//!
//! A child that leaves before its turn leaves the gate as it was.

use std::sync::Arc;

use crate::explore::{Ends, Seen, Waits, every_schedule, task};
use crate::gate::Gate;
use crate::inside::Inside;
use crate::store::Sharing::{self, Exclusive, Shared};

/// An entry of the call chain. When the last of its children is gone, its gate must be free.
struct Entry {
    gate: Gate,
    inside: Inside,
    ends: Option<Ends>,
    seen: Seen,
}

/// The turn to be inside an entry. Dropping it leaves the gate.
struct Turn {
    around: Arc<Entry>,
    sharing: Sharing,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.around.gate.leave(self.sharing);
    }
}

impl Entry {
    fn first(ends: Ends, seen: Seen) -> Arc<Self> {
        Arc::new(Self { gate: Gate::new(), inside: Inside::new(), ends: Some(ends), seen })
    }

    /// The entry of a child, with a gate of its own.
    fn inner(turn: &Turn) -> Arc<Self> {
        let seen = turn.around.seen.clone();
        Arc::new(Self { gate: Gate::new(), inside: Inside::new(), ends: None, seen })
    }

    /// A child that runs `inside` when its turn comes, or leaves if its wait ends first.
    fn child(self: &Arc<Self>, sharing: Sharing, waits: Waits, inside: impl FnOnce(&Turn)) {
        let entered = self.gate.try_enter(sharing);
        if !entered && waits.wait(self.gate.enter(sharing)).is_none() {
            return;
        }
        let turn = Turn { around: self.clone(), sharing };
        match sharing {
            Exclusive => self.inside.alone(|| inside(&turn)),
            Shared => self.inside.together(|| inside(&turn)),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.seen.note(&format!("{} together", self.inside.most_together()));
        if let Some(ends) = &self.ends {
            assert!(self.gate.try_enter(Exclusive), "the gate is not free at the end");
            ends.one_more();
        }
    }
}

/// Each of these children comes at any moment, and waits according to its `Waits`.
fn check(children: [(Sharing, Waits); 3]) -> Vec<String> {
    let seen = Seen::default();
    let together = seen.clone();
    every_schedule(&format!("gate {children:?}"), move |ends| {
        let entry = Entry::first(ends, together.clone());
        for (sharing, waits) in children {
            let entry = entry.clone();
            task(move || entry.child(sharing, waits, |_| ()));
        }
    });
    seen.all()
}

/// Red without: all slots for an exclusive child (`slots` always 1); one slot for a child that
/// shares (`slots` always `SLOTS`: no two are together); the `forget` in `enter` or in `try_enter`
/// (more slots come back than there were); `add_permits` (no turn ever comes).
#[test]
fn an_exclusive_child_is_inside_alone_and_sharers_may_overlap() {
    let modes = [Exclusive, Shared];
    for a in modes {
        for b in modes {
            for c in modes {
                let children = [a, b, c];
                let sharers = children.iter().filter(|mode| **mode == Shared).count();
                let expected: Vec<_> = (sharers.min(1)..=sharers)
                    .map(|so_many| format!("{so_many} together"))
                    .collect();
                assert_eq!(check(children.map(|mode| (mode, Waits::ForIt))), expected);
            }
        }
    }
}

/// Red without: taking all slots at once (with first one and then the others, each forgotten, a
/// child that leaves in between keeps one).
#[test]
fn a_child_that_leaves_before_its_turn_leaves_the_gate_as_it_was() {
    for briefly in [Exclusive, Shared] {
        for b in [Exclusive, Shared] {
            for c in [Exclusive, Shared] {
                check([(briefly, Waits::Briefly), (b, Waits::ForIt), (c, Waits::ForIt)]);
                check([(briefly, Waits::Briefly), (b, Waits::Briefly), (c, Waits::ForIt)]);
            }
        }
    }
}

/// A child has a child of its own while another child waits beside it.
///
/// Red without: a gate of its own for each entry (`Entry::inner`; in the call chain,
/// `Frame::admit`).
#[test]
fn a_grandchild_does_not_wait_for_a_sibling_of_its_parent() {
    for uncle in [Exclusive, Shared] {
        for inner in [Exclusive, Shared] {
            every_schedule(&format!("uncle {uncle:?} {inner:?}"), move |ends| {
                let entry = Entry::first(ends, Seen::default());
                let beside = entry.clone();
                task(move || beside.child(uncle, Waits::ForIt, |_| ()));
                entry.child(Exclusive, Waits::ForIt, |turn| {
                    let entry = Entry::inner(turn);
                    let beside = entry.clone();
                    task(move || beside.child(inner, Waits::ForIt, |_| ()));
                    entry.child(inner, Waits::ForIt, |_| ());
                });
            });
        }
    }
}
