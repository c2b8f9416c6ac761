//! The network between managers and the scripted store: whether requests and answers arrive.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::store::StoreError;

/// How long a request waits for an answer: the default `response_timeout` of stores with a server.
const NO_ANSWER_AFTER: Duration = Duration::from_secs(1);

/// What happens to requests now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    Fair,
    /// They are refused.
    Cut,
    /// They do not arrive.
    Hanging,
    /// They take effect, and their answers are lost.
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
    /// How many of the next requests are refused.
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

    pub(super) fn requests(&self) -> u64 {
        self.state().requests
    }

    /// Whether notifications of the store arrive.
    pub(super) fn delivers(&self) -> bool {
        self.state().weather == Fault::Fair
    }

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

    /// What happens to the next request.
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
            // Listen first, then look, so that no change in between is missed.
            mended.as_mut().enable();
            if self.state().weather != Fault::Hanging {
                return;
            }
            mended.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code inside can panic half-way, so a poisoned lock is still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_answer() -> StoreError {
    StoreError::new("no answer within 1s, as the test wants it")
}
