//! Entry points to this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "each function is named after the parser that it fuzzes")]

use std::sync::Arc;

use tokio::time::Instant;

use super::listener::Listener;
use super::queries::{AcquireRow, granted};
use crate::store::{AcquireOutcome, Subscriber};

pub fn acquired(
    counter: Option<i64>,
    contended: Option<bool>,
    value: Option<&[u8]>,
    remains: Option<i64>,
    clock: Option<i64>,
    queued: bool,
) -> Option<AcquireOutcome> {
    let row = AcquireRow { counter, contended, value, remains, clock };
    granted(&row, queued).map(|(outcome, _clock)| outcome)
}

/// A notification from the server, whose clock showed `clock` before.
pub fn notified(subscriber: &Arc<Subscriber>, clock: Option<u64>, channel: &str, payload: &str) {
    let listener = Listener::default();
    listener.0.subscribers.add(subscriber);
    if let Some(micros) = clock {
        listener.0.saw_clock(Instant::now(), micros);
    }
    listener.dispatch(channel, payload);
}
