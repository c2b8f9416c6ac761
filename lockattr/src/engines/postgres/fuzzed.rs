//! Entry points to this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "each function is named after the parser that it fuzzes")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::acquire_reply::{AcquireRow, granted};
use super::listener::{INBOX, Listener};
use super::schema::Schema;

use crate::store::{AcquireOutcome, Subscriber};

pub fn acquired(
    counter: Option<i64>,
    contended: Option<bool>,
    value: Option<&[u8]>,
    remains: Option<i64>,
    clock: Option<i64>,
    queued: bool,
) -> Option<AcquireOutcome> {
    let row = AcquireRow { counter, contended, value, remains, ahead: None, clock };
    granted(&row, Duration::from_secs(10), queued).map(|(outcome, _clock)| outcome)
}

/// The channel of a subscriber, without its number.
pub fn inbox() -> String {
    schema().channel(INBOX)
}

fn schema() -> Schema {
    Schema::new(None).expect("the schema `public`")
}

/// A notification from the server, whose clock showed `clock` before.
pub fn notified(subscriber: &Arc<Subscriber>, clock: Option<u64>, channel: &str, payload: &str) {
    let listener = Listener::of(&schema());
    listener.notifications.subscribers.add(subscriber);
    if let Some(micros) = clock {
        listener.notifications.saw_clock(Instant::now(), micros);
    }
    listener.dispatch(channel, payload);
}
