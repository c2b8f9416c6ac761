//! The machine under all simulated processes: its randomness comes from the seed, its clock from
//! the simulation, and each process has a calendar with its own error.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use lockattr::__sim;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::runtime::{self, Handle};
use tokio::time::Instant;

/// 2026-01-01: the beginning of every simulation.
const BEGINS: Duration = Duration::from_secs(1_767_225_600);

/// The machine of one simulation, while this exists.
#[derive(Debug)]
pub(crate) struct Machine(Rc<Speaks>);

#[derive(Debug)]
struct Speaks {
    chance: RefCell<StdRng>,
    /// How many microseconds the calendar of each runtime is ahead.
    ahead: RefCell<HashMap<runtime::Id, Rc<Cell<i64>>>>,
}

thread_local! {
    static EVENTS: Cell<u64> = const { Cell::new(0) };
    /// The time of the simulation, for callers outside of all hosts.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// When the runtime of each process began, by its own clock and by the simulation's.
    static BEGAN: RefCell<HashMap<runtime::Id, (Instant, Duration)>> = RefCell::default();
}

impl Machine {
    /// Puts all that runs on this thread on a machine with this seed.
    pub(crate) fn start(seed: u64) -> Self {
        EVENTS.set(0);
        NOW.set(Duration::ZERO);
        BEGAN.take();
        let chance = RefCell::new(StdRng::seed_from_u64(seed));
        let speaks = Rc::new(Speaks { chance, ahead: RefCell::default() });
        __sim::run_on(Some(speaks.clone()));
        Self(speaks)
    }

    /// Sets the calendar of the current runtime ahead by `micros`, which may change later.
    pub(crate) fn set_calendar(&self, micros: Rc<Cell<i64>>) {
        self.0.ahead.borrow_mut().insert(Handle::current().id(), micros);
    }

    /// Returns the same machine, for the processes on it.
    #[must_use]
    pub(crate) fn share(&self) -> Rc<Self> {
        Rc::new(Self(self.0.clone()))
    }
}

/// Restores the real machine. Nothing simulated may be left.
pub(crate) fn stop() {
    __sim::run_on(None);
}

impl __sim::Machine for Speaks {
    fn random_bits(&self) -> u64 {
        self.chance.borrow_mut().next_u64()
    }

    fn since_1970(&self) -> Duration {
        let ahead = Handle::try_current().ok().and_then(|runtime| {
            let ahead = self.ahead.borrow();
            ahead.get(&runtime.id()).map(|micros| micros.get())
        });
        let shift = Duration::from_micros(ahead.unwrap_or(0).unsigned_abs());
        let now = BEGINS + elapsed();
        if ahead.unwrap_or(0) < 0 { now - shift } else { now + shift }
    }
}

/// Records when the current runtime began, in the time of the simulation.
pub(crate) fn record_start(at: Duration) {
    let (runtime, now) = (Handle::current().id(), Instant::now());
    BEGAN.with_borrow_mut(|began| began.insert(runtime, (now, at)));
}

/// Sets the time of the simulation.
pub(crate) fn set_time(now: Duration) {
    NOW.set(now);
}

/// Returns how long the simulation has run, by the clock of the current process or host.
pub(crate) fn elapsed() -> Duration {
    let of_a_process = Handle::try_current().ok().and_then(|runtime| {
        let began = BEGAN.with_borrow(|began| began.get(&runtime.id()).copied());
        began.map(|(began, at)| at + began.elapsed())
    });
    of_a_process.or_else(turmoil::sim_elapsed).unwrap_or_else(|| NOW.get())
}

/// The clock of all histories: milliseconds of the simulation, because timers are no finer, and
/// below them the order of events within one millisecond.
///
/// # Panics
///
/// If the simulation's milliseconds do not fit into 64 bits.
pub(crate) fn clock() -> u64 {
    let events = EVENTS.replace(EVENTS.get() + 1);
    let millis = u64::try_from(elapsed().as_millis()).expect("no simulation is that long");
    millis * 1_000_000 + events
}
