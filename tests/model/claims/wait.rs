//! How long those wait that live, once nothing goes wrong any more.

use crate::search::{Explored, Model, explore};

/// No wait is that long, or it has no end.
pub(crate) const ENDLESS: u8 = 40;

/// A model of claims that wait.
pub(crate) trait Waits: Model {
    /// How many claims there are.
    fn waiters(&self) -> usize;

    /// Nothing fails any more: connections come back, and what is late never comes.
    fn calm(&self, state: &mut Self::State);

    /// The next step of a claim that makes one without a tick. Holders are done at once.
    fn goes_on(&self, state: &mut Self::State, claim: usize) -> bool;

    /// Whether the claim waits, and its process lives and can ask.
    fn still_waits(&self, state: &Self::State, claim: usize) -> bool;

    /// The state a tick later, unless somebody has to do something before.
    fn later(&self, state: &Self::State) -> Option<Self::State>;
}

/// Nothing is wrong in any of so many states; and from none of them a living waiter waits for longer
/// than so many ticks, once nothing fails any more.
#[track_caller]
pub(crate) fn holds<M: Waits>(model: &M, states: usize, longest: u8) {
    let explored = explore(model);
    explored.holds(states);
    assert_eq!(explored.longest_wait(model), longest, "ticks");
}

impl<M: Waits> Explored<'_, M> {
    /// The longest wait from any state.
    pub(crate) fn longest_wait(&self, model: &M) -> u8 {
        let mut longest = 0;
        self.some(|state| {
            longest = longest.max(wait_from(model, *state));
            false
        });
        longest
    }
}

/// How many ticks pass until each living waiter of `state` has had its locks: the others stay as
/// they are, stopped or dead.
fn wait_from<M: Waits>(model: &M, mut state: M::State) -> u8 {
    model.calm(&mut state);
    for ticks in 0..ENDLESS {
        while (0..model.waiters()).any(|claim| model.goes_on(&mut state, claim)) {}
        if !(0..model.waiters()).any(|claim| model.still_waits(&state, claim)) {
            return ticks;
        }
        state = model.later(&state).unwrap_or(state);
    }
    ENDLESS
}
