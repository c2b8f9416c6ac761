//! Combined releases: one run of `delete.lua` deletes the locks of all callers.
//!
//! A run of a script costs the server as much as three plain commands, before it does anything.
//! Combined callers pay that once.

use std::sync::Arc;

use redis::{Pipeline, Value};
use tokio::sync::oneshot;

use super::super::request;
use super::super::scripts::Scripts;
use super::CombinedReply;
use crate::store::{Claim, StoreError};

/// A lock to delete, and the caller that waits for the reply.
pub(super) struct Deletion {
    pub(super) claim: Arc<Claim>,
    /// The slot of the lock. A cluster runs a script for the keys of one slot only.
    pub(super) slot: usize,
    pub(super) caller: oneshot::Sender<Result<CombinedReply, StoreError>>,
}

/// The deletions of a pipeline, one run of the script for each slot.
#[derive(Default)]
pub(super) struct Deletions(Vec<Vec<Deletion>>);

impl Deletions {
    /// Groups the deletions whose callers still wait.
    pub(super) fn of(all: Vec<Deletion>) -> Self {
        let mut runs = Vec::<Vec<Deletion>>::new();
        for deletion in all {
            if deletion.caller.is_closed() {
                continue;
            }
            match runs.iter_mut().find(|run| run[0].slot == deletion.slot) {
                Some(run) => run.push(deletion),
                None => runs.push(vec![deletion]),
            }
        }
        Self(runs)
    }

    pub(super) fn add_to(&self, pipeline: &mut Pipeline, scripts: &Scripts) {
        for run in &self.0 {
            let claims: Vec<_> = run.iter().map(|deletion| &deletion.claim).collect();
            pipeline.add_command(request::delete(scripts, &claims).into_command());
        }
    }

    /// Gives each caller its reply. Takes one reply for each run, and leaves those behind them.
    pub(super) fn reply_all(self, replies: &mut impl Iterator<Item = Value>) {
        for (run, reply) in self.0.into_iter().zip(replies) {
            let mut deleted = each(run.len(), reply);
            for deletion in run {
                let reply = deleted.next().unwrap_or(Value::Nil);
                deletion.caller.send(Ok(CombinedReply { reply, counter: Value::Nil })).ok();
            }
        }
    }

    /// Gives each caller the error: no reply came.
    pub(super) fn fail(self, error: &StoreError) {
        for deletion in self.0.into_iter().flatten() {
            deletion.caller.send(Err(error.clone())).ok();
        }
    }
}

/// Returns what one run of the script replied about each of its locks. For a single lock the reply
/// is not a list.
fn each(count: usize, reply: Value) -> std::vec::IntoIter<Value> {
    match reply {
        Value::Array(deleted) if count > 1 => deleted,
        reply if count == 1 => vec![reply],
        error @ Value::ServerError(_) => vec![error; count],
        _ => Vec::new(),
    }
    .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the check of `count`, or of the error.
    #[test]
    fn a_list_is_about_many_and_an_error_about_all() {
        let each = |count, reply| each(count, reply).collect::<Vec<_>>();
        let (one, none) = (Value::Int(1), Value::Int(0));
        assert_eq!(each(1, one.clone()), std::slice::from_ref(&one));
        let list = vec![one.clone(), none];
        assert_eq!(each(2, Value::Array(list.clone())), list);
        assert_eq!(each(1, Value::Array(list.clone())), [Value::Array(list)]);
        assert_eq!(each(2, one), []);
        let error = redis::parse_redis_value(b"-NOSCRIPT No matching script.\r\n").unwrap();
        assert_eq!(each(2, error.clone()), [error.clone(), error]);
    }
}
