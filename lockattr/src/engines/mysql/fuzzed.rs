//! Entry points to this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "each function is named after the parser that it fuzzes")]

use std::time::Duration;

use super::request;
use crate::store::AcquireOutcome;
use crate::store::held_flags::held_each;

pub type Columns = (Option<u64>, Option<i64>, Option<Vec<u8>>, Option<i64>, Option<u64>);

pub fn acquired(columns: Columns, queued: bool) -> Option<AcquireOutcome> {
    let (counter, contended, value, left, clock) = columns;
    let ttl = queued.then_some(Duration::from_secs(9));
    let outcome = request::read_acquire((counter, contended, value, left, clock, contended), ttl);
    outcome.map(|(outcome, _clock)| outcome)
}

pub fn held(flags: &[u8]) -> Option<Vec<bool>> {
    held_each(flags)
}
