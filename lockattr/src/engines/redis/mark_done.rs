//! Marks a lock as done: `mark_done.lua`.

use std::time::Duration;

use redis::Value;
use tokio::time::Instant;

use super::node::Effect;
use super::servers::RoutedReply;
use super::{RedisStore, request};
use crate::store::{Claim, ReleaseOutcome, StoreError};

/// The reply of one run.
#[derive(Debug, PartialEq, Eq)]
enum MarkReply {
    Complete(ReleaseOutcome),
    /// There may be more waiters behind this place: run it again.
    Unfinished(Vec<u8>),
}

impl RedisStore {
    /// Marks the claim's lock. With `replicas`, the mark counts once they have it, as a lease does.
    pub(super) async fn mark(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        let route = self.servers.route(claim.key());
        let fence = self.servers.fence(route);
        let (sent, mut after) = (Instant::now(), None);
        loop {
            let script = request::mark_done(&self.scripts, claim, lasts, after.as_deref(), &fence);
            let routed = self.servers.invoke(route, Effect::Extend, &script).await?;
            let RoutedReply { reply, live, .. } = routed;
            match read(reply.value).ok_or_else(|| live.distrusted())? {
                MarkReply::Complete(ReleaseOutcome::Released) => {
                    reply.replicated?;
                    return Ok(ReleaseOutcome::Released);
                }
                // The mark that an earlier run made has ended meanwhile.
                MarkReply::Complete(_) if after.is_some() && sent.elapsed() >= lasts => {
                    return Ok(ReleaseOutcome::Released);
                }
                MarkReply::Complete(not_held) => return Ok(not_held),
                MarkReply::Unfinished(place) => after = Some(place),
            }
        }
    }
}

fn read(reply: Value) -> Option<MarkReply> {
    match reply {
        Value::Int(1) => Some(MarkReply::Complete(ReleaseOutcome::Released)),
        Value::Int(0) => Some(MarkReply::Complete(ReleaseOutcome::NotHeld)),
        Value::BulkString(place) => Some(MarkReply::Unfinished(place)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the 1 or the 0 in `read`.
    #[test]
    fn only_a_one_says_that_the_key_is_done() {
        let complete = |outcome| Some(MarkReply::Complete(outcome));
        assert_eq!(read(Value::Int(1)), complete(ReleaseOutcome::Released));
        assert_eq!(read(Value::Int(0)), complete(ReleaseOutcome::NotHeld));
        for odd in [Value::Int(2), Value::Int(-1), Value::Nil, Value::Okay] {
            assert_eq!(read(odd.clone()), None, "{odd:?}");
        }
    }
}
