//! The way between managers and the scripted store: whether requests get there, and answers back.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::store::StoreError;

/// How long a request waits for an answer: what the stores with a server have as
/// `response_timeout`.
const NO_ANSWER_AFTER: Duration = Duration::from_secs(1);

/// What becomes of requests now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    /// They are answered.
    #[default]
    Fair,
    /// They are refused.
    Cut,
    /// They get nowhere.
    Hanging,
    /// They take effect, and no caller hears.
    AnswersLost,
}

#[derive(Debug, Default)]
pub(super) struct Network {
    state: Mutex<State>,
    mended: Notify,
}

#[derive(Debug, Default)]
struct State {
    weather: Fault,
    /// How long each request takes.
    delay: Duration,
    /// How many of the next are refused.
    failing: u32,
    requests: u64,
}

impl Network {
    pub(super) fn set(&self, weather: Fault) {
        let mut state = self.state();
        state.weather = weather;
        if weather == Fault::Fair {
            state.failing = 0;
            state.delay = Duration::ZERO;
        }
        drop(state);
        self.mended.notify_waiters();
    }

    pub(super) fn delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    pub(super) fn fail_next(&self, requests: u32) {
        self.state().failing = requests;
    }

    /// How many requests were sent so far.
    pub(super) fn requests(&self) -> u64 {
        self.state().requests
    }

    /// Whether what the store says by itself arrives.
    pub(super) fn delivers(&self) -> bool {
        self.state().weather == Fault::Fair
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn send<T>(&self, request: impl FnOnce() -> T) -> Result<T, StoreError> {
        let (weather, delay) = self.next();
        if !delay.is_zero() {
            sleep(delay).await;
        }
        match weather {
            Fault::Fair => Ok(request()),
            Fault::Cut => Err(StoreError::new("the test has cut it off")),
            Fault::Hanging => {
                timeout(NO_ANSWER_AFTER, self.until_mended()).await.map_err(|_| no_answer())?;
                Ok(request())
            }
            Fault::AnswersLost => {
                drop(request());
                sleep(NO_ANSWER_AFTER).await;
                Err(no_answer())
            }
        }
    }

    /// What becomes of the next request.
    fn next(&self) -> (Fault, Duration) {
        let mut state = self.state();
        state.requests += 1;
        let weather = if state.failing > 0 { Fault::Cut } else { state.weather };
        state.failing = state.failing.saturating_sub(1);
        (weather, state.delay)
    }

    async fn until_mended(&self) {
        loop {
            let mut mended = pin!(self.mended.notified());
            // Listen first, look second: a change in between is then not missed.
            mended.as_mut().enable();
            if self.state().weather != Fault::Hanging {
                return;
            }
            mended.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_answer() -> StoreError {
    StoreError::new("no answer within 1s, as the test wants it")
}
