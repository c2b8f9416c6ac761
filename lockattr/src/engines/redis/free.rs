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

use super::counters::counts;
use super::native::Deleted;
use super::replicas::Answer;
use super::servers::{Place, Servers};
use crate::FencingToken;
use crate::store::{
    AcquireOutcome, AcquireRequest, ReleaseOutcome, ReleaseRequest, Sharing, StoreError,
};
use commands::Taken;

/// The outcome of an acquisition without a script.
pub(super) enum Free {
    Taken(AcquireOutcome),
    /// The script must decide. `may_have_set`: the lock may already have this claim's value.
    AskTheScript {
        may_have_set: bool,
    },
}

impl Servers {
    /// Acquires the lock if it is free and the request needs no script.
    pub(super) async fn take_free(
        &self,
        place: Place,
        asked: &AcquireRequest,
    ) -> Result<Free, StoreError> {
        let not_here = Free::AskTheScript { may_have_set: false };
        let Some(at) = self.at(place).filter(|_| is_plain(asked)) else { return Ok(not_here) };
        if at.notifications().contended.is(asked.claim.key().name(), Instant::now()) {
            return Ok(not_here);
        }
        let fence = self.fence(place);
        let taken = at.node().take(place.number(), self.counter(place), asked, fence).await;
        match taken {
            Ok(Taken::Granted(Answer { value: fencing, replicated })) => {
                replicated?;
                Ok(Free::Taken(AcquireOutcome::Acquired { fencing, contended: false }))
            }
            Ok(Taken::AskTheScript { may_have_set }) => Ok(Free::AskTheScript { may_have_set }),
            Err(error) => self.unless_elsewhere(error).map(|_: Option<()>| not_here),
        }
    }

    /// Returns the next token of this place's counter; `None` if a script must raise the counter
    /// first.
    pub(super) async fn next_number(
        &self,
        place: Place,
    ) -> Result<Option<FencingToken>, StoreError> {
        let Some(at) = self.at(place) else { return Ok(None) };
        let (fence, counter) = (self.fence(place), self.counter(place));
        match at.node().increment(place.number(), counter, &fence).await {
            Ok(number) => Ok(number),
            Err(error) => self.unless_elsewhere(error),
        }
    }

    /// Releases the lock if no process waits for it; `None` if the script must do it.
    pub(super) async fn give_back_free(
        &self,
        place: Place,
        releasing: &ReleaseRequest,
    ) -> Result<Option<ReleaseOutcome>, StoreError> {
        let Some(at) = self.at(place).filter(|_| suits(releasing)) else { return Ok(None) };
        let name = releasing.claim.key().name();
        if at.notifications().contended.is(name, Instant::now()) {
            return Ok(None);
        }
        let (_, slot) = self.counter(place);
        match at.node().delete((place.number(), slot), releasing).await {
            Ok(Deleted::Done) => Ok(Some(ReleaseOutcome::Released)),
            Ok(Deleted::AskTheScript) => {
                at.notifications().contended.note(name);
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
                self.doubts();
                Err(error)
            }
        }
    }
}

/// Returns whether the pair is enough: one lock, exclusive, with a token from the server's counter.
fn is_plain(asked: &AcquireRequest) -> bool {
    let claim = &asked.claim;
    let alone = claim.sharing() == Sharing::Exclusive && claim.keys().len() == 1;
    // A claim that waited has an entry in the queue, which only the scripts remove.
    alone && asked.hint.is_none() && claim.queued().is_none()
}

/// Returns whether one command can release the lock: one exclusive lock, in no queue, that becomes
/// free at once.
fn suits(releasing: &ReleaseRequest) -> bool {
    let ReleaseRequest { claim, after, quietly } = releasing;
    let alone = claim.sharing() == Sharing::Exclusive && claim.keys().len() == 1;
    alone && !quietly && claim.queued().is_none() && after.is_zero()
}

/// Returns the fencing token if both commands succeeded. `seen` is the greatest token seen before.
pub(super) fn number(set: &Value, incremented: &Value, seen: u64) -> Option<FencingToken> {
    let (Value::Okay, Value::Int(number)) = (set, incremented) else { return None };
    let number = u64::try_from(*number).ok().filter(|number| counts(*number, seen))?;
    FencingToken::read(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the check of the first reply, or of the token.
    #[test]
    fn a_pair_counts_only_as_a_whole() {
        let number = |set: &Value, incremented: &Value| number(set, incremented, 0);
        let clock = Value::Int(90_000_000_000_000);
        assert!(number(&Value::Okay, &clock).is_some());
        for set in [Value::Nil, Value::Int(1), Value::SimpleString("QUEUED".into())] {
            assert_eq!(number(&set, &clock), None, "{set:?}");
        }
        for odd in [Value::Int(1), Value::Int(-1), Value::Int(i64::MAX), Value::Nil, Value::Okay] {
            assert_eq!(number(&Value::Okay, &odd), None, "{odd:?}");
        }
    }
}
