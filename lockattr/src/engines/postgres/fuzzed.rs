//! The doors to this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "the doors are named after the rooms")]

use std::sync::Arc;

use tokio::time::Instant;

use super::asks::{Said, granted};
use super::hears::Hears;
use crate::store::{Acquire, Inbox};

pub fn acquired(
    number: Option<i64>,
    wanted: Option<bool>,
    value: Option<&[u8]>,
    remains: Option<i64>,
    clock: Option<i64>,
    in_line: bool,
) -> Option<Acquire> {
    let said = Said { number, wanted, value, remains, clock };
    granted(&said, in_line).map(|(answer, _clock)| answer)
}

/// A server notifies, after its clock showed `clock`.
pub fn notified(inbox: &Arc<Inbox>, clock: Option<u64>, channel: &str, payload: &str) {
    let hears = Hears::default();
    hears.0.inboxes.add(inbox);
    if let Some(micros) = clock {
        hears.0.saw_clock(Instant::now(), micros);
    }
    hears.told(channel, payload);
}
