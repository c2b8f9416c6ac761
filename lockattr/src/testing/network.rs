//! The network between managers and the scripted store: whether requests and answers arrive.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::StoreError;

/// How long a request waits for an answer: the default `response_timeout` of stores with a server.
const NO_ANSWER_AFTER: Duration = Duration::from_secs(1);

/// What happens to requests now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// Requests are refused.
    Cut,
    /// Requests do not arrive.
    Hanging,
    /// Requests take effect, and their answers are lost.
    AnswersLost,
}

#[derive(Debug, Default)]
pub(super) struct Network {
    state: Mutex<State>,
    mended: Notify,
}

#[derive(Debug, Default)]
struct State {
    fault: Fault,
    /// How long each request takes.
    delay: Duration,
    /// How many of the next requests are refused.
    failing: u32,
    requests: u64,
}

impl Network {
    pub(super) fn set(&self, fault: Fault) {
        let mut state = self.state();
        state.fault = fault;
        if fault == Fault::None {
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
        self.state().fault == Fault::None
    }

    pub(super) async fn send<T>(&self, request: impl FnOnce() -> T) -> Result<T, StoreError> {
        let (fault, delay) = self.next();
        if !delay.is_zero() {
            sleep(delay).await;
        }
        match fault {
            Fault::None => Ok(request()),
            Fault::Cut => Err(StoreError::new("the test has cut the network")),
            Fault::Hanging => {
                timeout(NO_ANSWER_AFTER, self.until_mended()).await.map_err(|_| no_response())?;
                Ok(request())
            }
            Fault::AnswersLost => {
                drop(request());
                sleep(NO_ANSWER_AFTER).await;
                Err(no_response())
            }
        }
    }

    /// What happens to the next request.
    fn next(&self) -> (Fault, Duration) {
        let mut state = self.state();
        state.requests += 1;
        let fault = if state.failing > 0 { Fault::Cut } else { state.fault };
        state.failing = state.failing.saturating_sub(1);
        (fault, state.delay)
    }

    async fn until_mended(&self) {
        loop {
            let mut mended = pin!(self.mended.notified());
            // Register first, check second, so that no change in between is missed.
            mended.as_mut().enable();
            if self.state().fault != Fault::Hanging {
                return;
            }
            mended.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code inside can panic half-way, so a poisoned lock is still valid.
        self.state.lock()
    }
}

fn no_response() -> StoreError {
    StoreError::new("no answer within 1s, simulated by the test")
}
