//! The simulated machine that `tests/sim` puts in place of the real one.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The machine on which a simulated process runs.
pub trait Machine {
    /// For owner tokens, subscriber numbers and pauses.
    fn random_bits(&self) -> u64;

    /// The wall clock.
    fn since_1970(&self) -> Duration;
}

thread_local! {
    static MACHINE: RefCell<Option<Rc<dyn Machine>>> = const { RefCell::new(None) };
}

/// Sets the machine for all code on this thread; `None` for the real one.
pub fn run_on(machine: Option<Rc<dyn Machine>>) {
    MACHINE.with(|current| current.replace(machine));
}

pub(crate) fn from_machine<T>(read: impl FnOnce(&dyn Machine) -> T) -> Option<T> {
    MACHINE.try_with(|machine| machine.borrow().as_deref().map(read)).ok().flatten()
}
