//! The commands of the free path on one server, combined with those of other callers under load.

use std::borrow::Cow;
use std::pin::pin;

use redis::{Cmd, Pipeline, RedisResult, Value};

use super::super::call::is_unknown;
use super::super::combiner::{Acquisition, Caller, CombinedReply};
use super::super::connection_slot::{ConnectionSlot, LiveConnection};
use super::super::counters::Counters;
use super::super::native::{Deleted, deletion, is_sent_on};
use super::super::node::{Effect, Node, until_demoted};
use super::super::replicas::{Replicas, ReplicatedReply};
use super::super::request::{self, millis};
use super::fencing_token;
use crate::FencingToken;
use crate::store::{AcquireRequest, ReleaseRequest, StoreError};

/// The outcome of a pair of commands.
pub(super) enum PairOutcome {
    /// The claim holds the lock, with this fencing token, once enough replicas have it.
    Granted(ReplicatedReply<FencingToken>),
    /// The script must decide. If the pair may have set the lock, an error of the script leaves it
    /// to be undone.
    NeedsScript { may_have_set: bool },
}

impl Node {
    /// Acquires a free lock with two commands. The counter `fence` gives the token.
    pub(super) async fn acquire(
        &self,
        index: usize,
        (counters, slot): (&Counters, usize),
        request: &AcquireRequest,
        fence: Cow<'static, str>,
    ) -> Result<PairOutcome, StoreError> {
        let connection_slot = self.connection_slot(index, Effect::Acquire);
        let live = connection_slot.get().await?;
        if !live.raised.is_raised(slot) {
            return Ok(PairOutcome::NeedsScript { may_have_set: false });
        }
        let (seen, caller) = (counters.last_seen(slot), Caller::of(connection_slot, &live));
        let [set, incremented, waited] = if caller.should_combine() && !self.replicas.are_needed() {
            let acquisition = Acquisition { claim: request.claim.clone(), counter: fence, slot };
            let CombinedReply { reply, counter } =
                caller.send_combined(set(request), Some(acquisition)).await?;
            [reply, counter, Value::Nil]
        } else {
            request.claim.departs();
            // Boxed, like those below: otherwise every combined caller's future would include the
            // client's.
            Box::pin(pair_alone(connection_slot, &live, &pair(request, &fence, self.replicas)))
                .await?
        };
        let Some(fencing) = fencing_token(&set, &incremented, seen) else {
            let may_have_set = !matches!(set, Value::Nil | Value::ServerError(_));
            // Neither is known to be the reply to its command.
            if may_have_set && set != Value::Okay || !is_count(&incremented) {
                return Err(live.distrusted());
            }
            for reply in [set, incremented] {
                live.raised.note_error(&reply);
            }
            return Ok(PairOutcome::NeedsScript { may_have_set });
        };
        counters.record(slot, fencing.counter());
        let waited = waited.extract_error().map(Some);
        let reply = waited.and_then(|waited| self.replicas.reply(fencing, waited));
        connection_slot.note(&live, reply).map(PairOutcome::Granted)
    }

    /// Increments the counter `fence`; `None` if a script must raise it first.
    pub(super) async fn increment(
        &self,
        index: usize,
        (counters, slot): (&Counters, usize),
        fence: &str,
    ) -> Result<Option<FencingToken>, StoreError> {
        let connection_slot = self.connection_slot(index, Effect::Acquire);
        let live = connection_slot.get().await?;
        if !live.raised.is_raised(slot) {
            return Ok(None);
        }
        let (seen, caller) = (counters.last_seen(slot), Caller::of(connection_slot, &live));
        let increment = increment(fence);
        let incremented = if caller.should_combine() {
            caller.send_combined(increment, None).await?.reply
        } else {
            let mut connection = live.connection();
            let incremented = Box::pin(connection.send_packed_command(&increment));
            connection_slot
                .note(&live, until_demoted(connection_slot, &live.demotion, incremented).await)?
        };
        let fencing = fencing_token(&Value::Okay, &incremented, seen);
        match fencing {
            Some(fencing) => counters.record(slot, fencing.counter()),
            None if !is_count(&incremented) => return Err(live.distrusted()),
            None => live.raised.note_error(&incremented),
        }
        Ok(fencing)
    }

    /// Deletes a claim's lock if it has the claim's value, with the server's own command or else a
    /// script.
    pub(super) async fn delete(
        &self,
        (index, slot): (usize, usize),
        release: &ReleaseRequest,
    ) -> Result<Deleted, StoreError> {
        let connection_slot = self.connection_slot(index, Effect::Release);
        let live = connection_slot.get().await?;
        let caller = Caller::of(connection_slot, &live);
        if let Some(native) = &live.native
            && let Some(command) = native.command(release)
        {
            let deleted = native.read(caller.send(command).await?);
            if let Some(deleted) = connection_slot.note(&live, deleted)? {
                return Ok(deleted);
            }
        }
        if caller.should_combine() {
            let deleted = caller.delete(release.claim.clone(), slot).await?;
            // An error may be about the lock of another caller.
            if let Ok(deleted) = deleted {
                return connection_slot.note(&live, deletion(&deleted));
            }
        }
        let script = || request::delete(&connection_slot.scripts, &[&release.claim]);
        let deleted = match caller.send(script().into_command()).await? {
            Err(error) if is_unknown(&error) => Box::pin(caller.load_and_send(script())).await?,
            deleted => deleted,
        };
        connection_slot.note(&live, read(deleted))
    }
}

/// Sends a pair alone. Returns the replies to `SET`, `INCR` and `WAIT`, each `Nil` if there is
/// none.
async fn pair_alone(
    connection_slot: &ConnectionSlot,
    live: &LiveConnection,
    pair: &Pipeline,
) -> Result<[Value; 3], StoreError> {
    let mut connection = live.connection();
    // Pinned here, because it is large to move.
    let replies = pin!(connection.send_packed_commands(pair, 0, pair.len()));
    let replies = until_demoted(connection_slot, &live.demotion, replies).await;
    let mut replies = connection_slot.note(live, replies)?.into_iter();
    Ok([(); 3].map(|()| replies.next().unwrap_or(Value::Nil)))
}

/// Returns the command that acquires a free lock.
fn set(request: &AcquireRequest) -> Cmd {
    let claim = &request.claim;
    let (name, value) = (claim.key().name(), claim.value());
    // With capacity for all arguments.
    let mut set = Cmd::with_capacity(6, name.len() + value.len() + 32);
    set.arg("SET").arg(name).arg(value).arg("NX").arg("PX").arg(millis(request.ttl));
    set
}

/// Returns the command that increments the counter.
fn increment(fence: &str) -> Cmd {
    let mut increment = Cmd::with_capacity(2, fence.len() + 4);
    increment.arg("INCR").arg(fence);
    increment
}

/// Returns the commands that acquire a lock: `SET`, `INCR`, and `WAIT` if replicas are needed.
fn pair(request: &AcquireRequest, fence: &str, replicas: Replicas) -> Pipeline {
    let mut pair = redis::pipe();
    pair.add_command(set(request)).add_command(increment(fence));
    replicas.wait(&mut pair);
    pair
}

/// Returns whether this can be the reply to an increment. `Nil` stands for none.
fn is_count(incremented: &Value) -> bool {
    matches!(incremented, Value::Int(_) | Value::Nil | Value::ServerError(_))
}

/// Reads the reply of `delete.lua`.
fn read(deleted: RedisResult<Value>) -> RedisResult<Deleted> {
    match deleted {
        Err(error) if is_sent_on(&error) => Ok(Deleted::NeedsScript),
        deleted => deletion(&deleted?),
    }
}
