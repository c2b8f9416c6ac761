//! The machine under all simulated processes: its randomness comes from the seed, its clock from
//! the simulation, and each process has a calendar with its own error.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lockattr::__sim;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::runtime::{self, Handle};
use tokio::time::Instant;

/// 2026-01-01: the beginning of every simulation.
const BEGINS: Duration = Duration::from_secs(1_767_225_600);

#[derive(Debug)]
struct Machine {
    chance: RefCell<StdRng>,
}

/// How many microseconds a calendar is ahead; clones are the same calendar.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar(Arc<AtomicI64>);

thread_local! {
    /// The calendar of each runtime.
    static CALENDARS: RefCell<HashMap<runtime::Id, Calendar>> = RefCell::default();
    static EVENTS: Cell<u64> = const { Cell::new(0) };
    /// The time of the simulation, for callers outside of all hosts.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// When the runtime of each process began, by its own clock and by the simulation's.
    static BEGAN: RefCell<HashMap<runtime::Id, (Instant, Duration)>> = RefCell::default();
}

/// Puts all that runs on this thread on a machine with this seed.
pub(crate) fn start(seed: u64) {
    EVENTS.set(0);
    NOW.set(Duration::ZERO);
    BEGAN.take();
    CALENDARS.take();
    let chance = RefCell::new(StdRng::seed_from_u64(seed));
    __sim::run_on(Some(Rc::new(Machine { chance })));
}

impl Calendar {
    /// A calendar that is this far ahead, in microseconds.
    pub(crate) fn new(micros: i64) -> Self {
        Self(Arc::new(AtomicI64::new(micros)))
    }

    /// Makes this the calendar of the current runtime.
    pub(crate) fn use_here(&self) {
        CALENDARS.with_borrow_mut(|all| all.insert(Handle::current().id(), self.clone()));
    }

    /// Jumps ahead by this many microseconds, or back.
    pub(crate) fn jump(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

/// Returns how many microseconds the calendar of the current runtime is ahead.
pub(crate) fn micros_ahead() -> i64 {
    let calendar = |runtime: Handle| {
        CALENDARS.with_borrow(|all| Some(all.get(&runtime.id())?.0.load(Ordering::Relaxed)))
    };
    Handle::try_current().ok().and_then(calendar).unwrap_or(0)
}

/// Returns the date of the current runtime, as the time since 1970.
pub(crate) fn date() -> Duration {
    let (ahead, now) = (micros_ahead(), BEGINS + elapsed());
    let shift = Duration::from_micros(ahead.unsigned_abs());
    if ahead < 0 { now - shift } else { now + shift }
}

/// Restores the real machine. Nothing simulated may be left.
pub(crate) fn stop() {
    __sim::run_on(None);
}

impl __sim::Machine for Machine {
    fn random_bits(&self) -> u64 {
        self.chance.borrow_mut().next_u64()
    }

    fn since_1970(&self) -> Duration {
        date()
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
