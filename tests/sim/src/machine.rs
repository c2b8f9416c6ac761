//! The machine under all simulated processes: its chance comes from the seed, its clock from the
//! simulation, and each process has a calendar that is wrong in its own way.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use lockattr::__sim;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::runtime::{self, Handle};
use tokio::time::Instant;

/// 2026-01-01: when every simulation begins.
const BEGINS: Duration = Duration::from_secs(1_767_225_600);

/// The machine of one simulation, for as long as this exists.
#[derive(Debug)]
pub(crate) struct Machine(Rc<Speaks>);

#[derive(Debug)]
struct Speaks {
    chance: RefCell<StdRng>,
    /// By how many microseconds the calendar of each runtime is ahead.
    ahead: RefCell<HashMap<runtime::Id, Rc<Cell<i64>>>>,
}

thread_local! {
    static EVENTS: Cell<u64> = const { Cell::new(0) };
    /// How long the simulation has run, for those who ask from outside of all hosts.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// When the runtime of each process began, by its own clock and by the simulation's.
    static BEGAN: RefCell<HashMap<runtime::Id, (Instant, Duration)>> = RefCell::default();
}

impl Machine {
    /// Puts all that runs on this thread on a machine of this seed.
    pub(crate) fn start(seed: u64) -> Self {
        EVENTS.set(0);
        NOW.set(Duration::ZERO);
        BEGAN.take();
        let chance = RefCell::new(StdRng::seed_from_u64(seed));
        let speaks = Rc::new(Speaks { chance, ahead: RefCell::default() });
        __sim::run_on(Some(speaks.clone()));
        Self(speaks)
    }

    /// From now on the calendar of the runtime that this is called on is ahead by what `micros` says.
    pub(crate) fn has_calendar(&self, micros: Rc<Cell<i64>>) {
        self.0.ahead.borrow_mut().insert(Handle::current().id(), micros);
    }

    /// The same machine, for those who live on it.
    #[must_use]
    pub(crate) fn share(&self) -> Rc<Self> {
        Rc::new(Self(self.0.clone()))
    }
}

/// The real one again: nothing simulated may be left on it.
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

/// The runtime that this is called on began so long after the simulation did.
pub(crate) fn runs_since(at: Duration) {
    let (runtime, now) = (Handle::current().id(), Instant::now());
    BEGAN.with_borrow_mut(|began| began.insert(runtime, (now, at)));
}

/// The simulation has run so long.
pub(crate) fn it_is(now: Duration) {
    NOW.set(now);
}

/// How long the simulation has run, by the clock of the process or of the host that asks.
pub(crate) fn elapsed() -> Duration {
    let of_a_process = Handle::try_current().ok().and_then(|runtime| {
        let began = BEGAN.with_borrow(|began| began.get(&runtime.id()).copied());
        began.map(|(began, at)| at + began.elapsed())
    });
    of_a_process.or_else(turmoil::sim_elapsed).unwrap_or_else(|| NOW.get())
}

/// The clock of all histories: milliseconds of the simulation, for timers know nothing smaller, and
/// below them the order in which events of the same one came.
///
/// # Panics
///
/// If a simulation is longer than all time.
pub(crate) fn clock() -> u64 {
    let events = EVENTS.replace(EVENTS.get() + 1);
    let millis = u64::try_from(elapsed().as_millis()).expect("no simulation is that long");
    millis * 1_000_000 + events
}
