//! Measures how long living waiters wait, once nothing fails any more.

use crate::search::{Explored, Model, explore};

/// Longer than any wait that ends.
pub(crate) const ENDLESS: u8 = 40;

/// A model of claims that wait.
pub(crate) trait Waits: Model {
    /// The number of claims.
    fn waiters(&self) -> usize;

    /// Ends all faults: connections come back, and late messages never arrive.
    fn end_faults(&self, state: &mut Self::State);

    /// Makes the next step of a claim that can make one without a tick. Holders release at once.
    fn advance(&self, state: &mut Self::State, claim: usize) -> bool;

    /// Returns whether the claim waits, and its process lives and can ask.
    fn is_waiting(&self, state: &Self::State, claim: usize) -> bool;

    /// Returns the state a tick later, unless a process has to act first.
    fn later(&self, state: &Self::State) -> Option<Self::State>;
}

/// Asserts that no state is wrong, that there are this many, and that from none of them a living
/// waiter waits longer than `longest` ticks, once nothing fails any more.
#[track_caller]
pub(crate) fn holds<M: Waits>(model: &M, states: usize, longest: u8) {
    let explored = explore(model);
    explored.holds(states);
    assert_eq!(explored.longest_wait(model), longest, "ticks");
}

impl<M: Waits> Explored<'_, M> {
    /// Returns the longest wait from any state.
    pub(crate) fn longest_wait(&self, model: &M) -> u8 {
        let mut longest = 0;
        self.some(|state| {
            longest = longest.max(wait_from(model, *state));
            false
        });
        longest
    }
}

/// Returns the number of ticks until each living waiter of `state` has had its locks. The other
/// processes stay stopped or dead.
fn wait_from<M: Waits>(model: &M, mut state: M::State) -> u8 {
    model.end_faults(&mut state);
    for ticks in 0..ENDLESS {
        while (0..model.waiters()).any(|claim| model.advance(&mut state, claim)) {}
        if !(0..model.waiters()).any(|claim| model.is_waiting(&state, claim)) {
            return ticks;
        }
        state = model.later(&state).unwrap_or(state);
    }
    ENDLESS
}
