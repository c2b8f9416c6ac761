//! Runs a model under every schedule, with tasks that wait, wait briefly, or do not wait.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use shuttle::{Config, Runner};

use crate::schedules::EverySchedule;

/// Runs `model` under all schedules, and prints how many there are. Each run must count itself in
/// `Ends` at its end, where the model checks that nothing is left.
pub(crate) fn every_schedule(name: &str, model: impl Fn(Ends) + Send + Sync + 'static) {
    let ends = Ends::default();
    // No limit of schedules or time: the search ends when no choice is left.
    let search = EverySchedule::default();
    let repeated = search.repeated();
    let runs = Runner::new(search, Config::default()).run({
        let ends = ends.clone();
        move || model(ends.clone())
    });
    assert_eq!(ends.0.load(Ordering::Relaxed), runs, "{name}: some runs did not end");
    report(name, runs - repeated.get(), repeated.get());
}

#[expect(clippy::print_stdout, reason = "a model prints how much it explored")]
fn report(name: &str, schedules: usize, repeated: usize) {
    println!("{name}: all of {schedules} schedules, and {repeated} of them again");
}

/// The number of runs that reached their end.
#[derive(Clone, Default)]
pub(crate) struct Ends(Arc<AtomicUsize>);

impl Ends {
    pub(crate) fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What was observed in any of the schedules.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub(crate) fn note(&self, what: &str) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.iter().any(|known| known == what) {
            seen.push(what.to_owned());
        }
    }

    pub(crate) fn all(&self) -> Vec<String> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        seen.sort();
        seen
    }
}

/// How long a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Until its turn comes.
    ForIt,
    /// Polls once, and leaves at some later moment if its turn had not come: like a caller whose
    /// timeout expires or whose future is dropped, perhaps woken but not polled again.
    Briefly,
    /// Leaves without polling.
    NotAtAll,
}

impl Waits {
    pub(crate) const ALL: [Self; 3] = [Self::ForIt, Self::Briefly, Self::NotAtAll];

    /// Waits for `future` that long, and then drops it.
    pub(crate) fn wait<F: Future>(self, future: F) -> Option<F::Output> {
        match self {
            Self::ForIt => Some(shuttle::future::block_on(future)),
            Self::Briefly => match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(came) => Some(came),
                Poll::Pending => None,
            },
            Self::NotAtAll => None,
        }
    }
}

/// Starts another task.
pub(crate) fn task(run: impl FnOnce() + Send + 'static) {
    drop(shuttle::thread::spawn(run));
}
