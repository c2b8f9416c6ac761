//! The free path: acquires an uncontended lock with two plain commands, and releases it with one.
//!
//! It relies on one invariant, which the scripts keep: **a lock with waiters is never absent**
//! (`lock.lua`). So `SET … NX` succeeds only if it overtakes no waiter, and a value that is still
//! what its owner wrote means that no process waits.
//!
//! The fencing token comes from an `INCR` behind the `SET`, in the same write. If the reply arrives
//! before the lease ends, the `INCR` ran while the lock was held, so the next owner's token is
//! greater. `counters.rs` says when a bare `INCR` is safe.
//!
//! A pair of commands counts only as a whole. After any other outcome (another claim holds the
//! lock, an error, a redirection) the script decides, and adopts a lock that the pair has set.

mod commands;

use redis::Value;
use tokio::time::Instant;

use super::counters::is_plausible;
use super::native::Deleted;
use super::replicas::ReplicatedReply;
use super::servers::{Route, Servers};
use crate::FencingToken;
use crate::store::{
    AcquireOutcome, AcquireRequest, ReleaseOutcome, ReleaseRequest, Sharing, StoreError,
};
use commands::PairOutcome;

/// The outcome of an acquisition without a script.
pub(super) enum FreeOutcome {
    Acquired(AcquireOutcome),
    /// The script must decide. `may_have_set`: the lock may already have this claim's value.
    NeedsScript {
        may_have_set: bool,
    },
}

impl Servers {
    /// Acquires the lock if it is free and the request needs no script.
    pub(super) async fn acquire_free(
        &self,
        route: Route,
        request: &AcquireRequest,
    ) -> Result<FreeOutcome, StoreError> {
        let not_here = FreeOutcome::NeedsScript { may_have_set: false };
        let Some(server) = self.routed_server(route).filter(|_| is_plain_acquire(request)) else {
            return Ok(not_here);
        };
        if server.notifications().contended.contains(request.claim.key().name(), Instant::now()) {
            return Ok(not_here);
        }
        let fence = self.fence(route);
        let acquired =
            server.node().acquire(route.index(), self.counter(route), request, fence).await;
        match acquired {
            Ok(PairOutcome::Granted(ReplicatedReply { value: fencing, replicated })) => {
                replicated?;
                Ok(FreeOutcome::Acquired(AcquireOutcome::Acquired { fencing, contended: false }))
            }
            Ok(PairOutcome::NeedsScript { may_have_set }) => {
                Ok(FreeOutcome::NeedsScript { may_have_set })
            }
            Err(error) => self.unless_elsewhere(error).map(|_: Option<()>| not_here),
        }
    }

    /// Returns the next token of this route's counter; `None` if a script must raise the counter
    /// first.
    pub(super) async fn next_token(
        &self,
        route: Route,
    ) -> Result<Option<FencingToken>, StoreError> {
        let Some(server) = self.routed_server(route) else { return Ok(None) };
        let (fence, counter) = (self.fence(route), self.counter(route));
        match server.node().increment(route.index(), counter, &fence).await {
            Ok(token) => Ok(token),
            Err(error) => self.unless_elsewhere(error),
        }
    }

    /// Releases the lock if no process waits for it; `None` if the script must do it.
    pub(super) async fn release_free(
        &self,
        route: Route,
        release: &ReleaseRequest,
    ) -> Result<Option<ReleaseOutcome>, StoreError> {
        let Some(server) = self.routed_server(route).filter(|_| is_plain_release(release)) else {
            return Ok(None);
        };
        let name = release.claim.key().name();
        if server.notifications().contended.contains(name, Instant::now()) {
            return Ok(None);
        }
        let (_, slot) = self.counter(route);
        match server.node().delete((route.index(), slot), release).await {
            Ok(Deleted::Done) => Ok(Some(ReleaseOutcome::Released)),
            Ok(Deleted::NeedsScript) => {
                server.notifications().contended.note(name);
                Ok(None)
            }
            Err(error) => self.unless_elsewhere(error),
        }
    }

    /// Returns the error, or `None` if a cluster sent nothing: another node may own the slot by
    /// now, and the script finds it.
    fn unless_elsewhere<T>(&self, error: StoreError) -> Result<Option<T>, StoreError> {
        match self {
            Self::Cluster(..) if error.is_not_sent() => Ok(None),
            _ => {
                self.refresh_soon();
                Err(error)
            }
        }
    }
}

/// Returns whether the pair is enough: one lock, exclusive, with a token from the server's counter.
fn is_plain_acquire(request: &AcquireRequest) -> bool {
    let claim = &request.claim;
    let alone = claim.sharing() == Sharing::Exclusive && claim.keys().len() == 1;
    // A claim that waited has an entry in the queue, which only the scripts remove.
    alone && request.hint.is_none() && claim.queued().is_none()
}

/// Returns whether one command can release the lock: one exclusive lock, in no queue, that becomes
/// free at once.
fn is_plain_release(release: &ReleaseRequest) -> bool {
    let ReleaseRequest { claim, after, quietly } = release;
    let alone = claim.sharing() == Sharing::Exclusive && claim.keys().len() == 1;
    alone && !quietly && claim.queued().is_none() && after.is_zero()
}

/// Returns the fencing token if both commands succeeded. `seen` is the greatest token seen before.
pub(super) fn fencing_token(set: &Value, incremented: &Value, seen: u64) -> Option<FencingToken> {
    let (Value::Okay, Value::Int(counter)) = (set, incremented) else { return None };
    let counter = u64::try_from(*counter).ok().filter(|counter| is_plausible(*counter, seen))?;
    FencingToken::read(counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the check of the first reply, or of the token.
    #[test]
    fn a_pair_counts_only_as_a_whole() {
        let fencing_token = |set: &Value, incremented: &Value| fencing_token(set, incremented, 0);
        let clock = Value::Int(90_000_000_000_000);
        assert!(fencing_token(&Value::Okay, &clock).is_some());
        for set in [Value::Nil, Value::Int(1), Value::SimpleString("QUEUED".into())] {
            assert_eq!(fencing_token(&set, &clock), None, "{set:?}");
        }
        for odd in [Value::Int(1), Value::Int(-1), Value::Int(i64::MAX), Value::Nil, Value::Okay] {
            assert_eq!(fencing_token(&Value::Okay, &odd), None, "{odd:?}");
        }
    }
}
