//! Entry points to this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "each function is named after the parser that it fuzzes")]

use std::sync::Arc;
use std::time::Duration;

use redis::{PushInfo, Value};
use tokio::time::Instant;

use super::cluster;
use super::free::fencing_token;
use super::native::{Deleted, deletion};
use super::notifications::RedisNotifications;
use super::request::{self, AcquireReply};
use crate::Holder;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, Subscriber, Waiting,
};

pub fn acquired(reply: Value, queued: bool) -> Option<AcquireOutcome> {
    let claim = Arc::new(Claim::new(LockKey::new("lock:", "a").ok()?, ""));
    let waiting = if queued { Waiting::Queued } else { Waiting::Not };
    let request = AcquireRequest::new(claim, Duration::from_secs(10)).waiting(waiting);
    match request::granted(reply, &request)? {
        AcquireReply::Complete(outcome, _clock) => Some(outcome),
        AcquireReply::Unfinished => None,
    }
}

pub fn held(reply: &Value, expected: usize) -> Option<Vec<bool>> {
    request::held(reply, expected).map(|(held, _unfinished)| held)
}

pub fn held_by(reply: Value) -> Option<Holder> {
    request::held_by(reply)
}

/// Returns the outcome of a release without a script; `None` if a script must decide.
pub fn released(deleted: &Value) -> Option<ReleaseOutcome> {
    match deletion(deleted) {
        Deleted::Done => Some(ReleaseOutcome::Released),
        Deleted::NeedsScript => None,
    }
}

/// Returns the token from the two replies of the free path. `seen` is the greatest token before.
pub fn taken(set: &Value, incremented: &Value, seen: u64) -> Option<u64> {
    fencing_token(set, incremented, seen).map(crate::FencingToken::counter)
}

pub fn is_a_map(reply: Value) -> bool {
    cluster::is_a_map(reply)
}

/// Delivers a push of the server, after its clock showed `clock`.
pub fn pushed(subscriber: &Arc<Subscriber>, clock: Option<u64>, push: &PushInfo) {
    for notifications in
        [RedisNotifications::new(false), RedisNotifications::of_a_node(&Arc::default(), false)]
    {
        notifications.add(subscriber);
        if let Some(micros) = clock {
            notifications.saw_clock(Instant::now(), micros);
        }
        notifications.is_lost_subscription(push);
        notifications.deliver_push(push);
    }
}
