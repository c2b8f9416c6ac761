//! The clock of a test's runtime, which the test may stop or move. The clocks of real servers go on.

use std::cell::Cell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::spawn_blocking;
use tokio::time;

use crate::eventually::HUNG;

thread_local! {
    static IS_STOPPED: Cell<bool> = const { Cell::new(false) };
}

/// Moves the clock of this test's runtime ahead by `time`: what is due by then is due now.
///
/// A lease of ten minutes is then renewed, or over, without a wait of minutes, and no busy machine loses it before.
/// Requests under way lose as much of their response timeout, and calls of their wait.
///
/// # Panics
///
/// Without a runtime of one thread, which is the usual one of a test, or while the clock is [stopped](StoppedClock).
pub fn skip(time: Duration) {
    let _stopped = Paused::new();
    advance(time);
}

/// While it exists, the clock of this test's runtime stands still: no timer fires, while servers are asked and answer.
/// So the requests that a timer would add to a count are not made, however slow the machine is.
///
/// [`eventually`](crate::eventually) works; `sleep` and `timeout` do not end. If the clock stands still for longer than
/// [`HUNG`], timers fire after all, so that a test ends that hangs; it has failed then, also if a timer helps it.
#[derive(Debug)]
pub struct StoppedClock {
    _paused: Paused,
    ended: mpsc::Sender<()>,
}

impl StoppedClock {
    /// Stops the clock.
    ///
    /// # Panics
    ///
    /// As [`skip`].
    #[expect(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Self {
        let paused = Paused::new();
        let (ended, ends) = mpsc::channel();
        // Tokio moves a paused clock to the next timer when nothing else is to be done, except while a blocking task runs.
        spawn_blocking(move || ends.recv_timeout(HUNG));
        IS_STOPPED.set(true);
        Self { _paused: paused, ended }
    }

    /// Moves the clock ahead by `time`, and lets it stand still there.
    pub fn advance(&self, time: Duration) {
        advance(time);
    }
}

impl Drop for StoppedClock {
    fn drop(&mut self) {
        IS_STOPPED.set(false);
        let is_late = self.ended.send(()).is_err();
        assert!(!is_late || thread::panicking(), "the clock stood still for {HUNG:?}");
    }
}

/// Returns whether the clock of this test's runtime stands still.
pub(crate) fn is_stopped() -> bool {
    IS_STOPPED.get()
}

/// Waits for `time`, by a clock that no test stops.
#[expect(clippy::disallowed_methods, reason = "it stops a thread that no task has")]
pub async fn pause(time: Duration) {
    match is_stopped() {
        true => spawn_blocking(move || thread::sleep(time)).await.unwrap_or_default(),
        false => time::sleep(time).await,
    }
}

/// The first poll moves the clock.
fn advance(time: Duration) {
    time::advance(time).now_or_never();
}

#[derive(Debug)]
struct Paused;

impl Paused {
    fn new() -> Self {
        time::pause();
        Self
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if !thread::panicking() {
            time::resume();
        }
    }
}
