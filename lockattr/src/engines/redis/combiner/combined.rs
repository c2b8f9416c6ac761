//! Combined commands as one pipeline, and which of its replies each caller gets.

use std::borrow::Cow;
use std::sync::Arc;

use redis::{Cmd, Pipeline, Value};
use tokio::sync::oneshot;

use super::super::connection_slot::{ConnectionSlot, LiveConnection};
use super::super::node::until_demoted;
use super::deletions::{Deletion, Deletions};
use super::{Acquisition, CombinedReply};
use crate::store::StoreError;

/// The commands and deletions that callers have queued.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) commands: Vec<Entry>,
    pub(super) deletions: Vec<Deletion>,
}

/// A command, and the caller that waits for its reply.
pub(super) struct Entry {
    pub(super) command: Cmd,
    pub(super) acquisition: Option<Acquisition>,
    pub(super) caller: oneshot::Sender<Result<CombinedReply, StoreError>>,
}

/// A pipeline. First the deletions, because a released lock may be acquired again; then the
/// commands of the callers; then one `INCRBY` for each counter, so that each token is counted while
/// its lock is held.
#[derive(Default)]
pub(super) struct Combined {
    pipeline: Pipeline,
    deletions: Deletions,
    callers: Vec<Caller>,
    counters: Vec<Counted>,
}

struct Caller {
    sender: oneshot::Sender<Result<CombinedReply, StoreError>>,
    /// The index of its acquisition's counter, and its position among that counter's acquisitions.
    counter: Option<(usize, i64)>,
}

/// A counter, and how many acquisitions it counts.
struct Counted {
    slot: usize,
    name: Cow<'static, str>,
    count: i64,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.commands.len() + self.deletions.len()
    }
}

impl Combined {
    /// Combines the commands whose callers still wait. An acquisition whose counter must be raised
    /// first gets its reply at once, and is not sent.
    pub(super) fn of(
        entries: Entries,
        connection_slot: &ConnectionSlot,
        live: &LiveConnection,
    ) -> Self {
        let mut combined = Self { deletions: Deletions::of(entries.deletions), ..Self::default() };
        combined.deletions.add_to(&mut combined.pipeline, &connection_slot.scripts);
        for Entry { command, acquisition, caller: sender } in entries.commands {
            if sender.is_closed() {
                continue;
            }
            let counter = match acquisition {
                Some(Acquisition { slot, .. }) if !live.raised.is_raised(slot) => {
                    sender.send(Ok(CombinedReply { reply: Value::Nil, counter: Value::Nil })).ok();
                    continue;
                }
                Some(Acquisition { claim, counter, slot }) => {
                    claim.departs();
                    Some(combined.add_acquisition(counter, slot))
                }
                None => None,
            };
            combined.pipeline.add_command(command);
            combined.callers.push(Caller { sender, counter });
        }
        for Counted { name, count, .. } in &combined.counters {
            combined.pipeline.add_command(increment_by(name, *count));
        }
        combined
    }

    /// Returns the index of the counter, and the position of one more acquisition in it.
    fn add_acquisition(&mut self, name: Cow<'static, str>, slot: usize) -> (usize, i64) {
        // A pipeline has few counters: comparing them all is faster than a hash.
        let which = self.counters.iter().position(|counted| counted.slot == slot);
        let which = which.unwrap_or_else(|| {
            self.counters.push(Counted { slot, name, count: 0 });
            self.counters.len() - 1
        });
        self.counters[which].count += 1;
        (which, self.counters[which].count)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pipeline.is_empty()
    }

    /// Sends the pipeline, and gives each caller its reply.
    pub(super) async fn send(
        self,
        connection_slot: Arc<ConnectionSlot>,
        live: Arc<LiveConnection>,
    ) {
        let mut connection = live.connection();
        let replies = connection.send_packed_commands(&self.pipeline, 0, self.pipeline.len());
        let replies = until_demoted(&connection_slot, &live.demotion, replies).await;
        self.reply_all(connection_slot.note(&live, replies));
    }

    fn reply_all(self, replies: Result<Vec<Value>, StoreError>) {
        let Self { deletions, callers, counters, .. } = self;
        let mut replies = match replies {
            Ok(replies) => replies.into_iter(),
            Err(error) => {
                deletions.fail(&error);
                for caller in callers {
                    caller.sender.send(Err(error.clone())).ok();
                }
                return;
            }
        };
        deletions.reply_all(&mut replies);
        let last = replies.as_slice().get(callers.len()..).unwrap_or_default().to_vec();
        for (caller, reply) in callers.into_iter().zip(replies) {
            let counter = caller.counter.map_or(Value::Nil, |(which, nth)| {
                counter_before(last.get(which).unwrap_or(&Value::Nil), counters[which].count - nth)
            });
            // A caller that gave up undoes its request.
            caller.sender.send(Ok(CombinedReply { reply, counter })).ok();
        }
    }
}

/// Returns the value `before` steps before the last one, `Nil` if there is none, and an error
/// unchanged.
fn counter_before(last: &Value, before: i64) -> Value {
    match last {
        Value::Int(last) => last.checked_sub(before).map_or(Value::Nil, Value::Int),
        other => other.clone(),
    }
}

fn increment_by(name: &str, count: i64) -> Cmd {
    let mut command = Cmd::with_capacity(3, name.len() + 16);
    command.arg("INCRBY").arg(name).arg(count);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    type ReplyReceiver = oneshot::Receiver<Result<CombinedReply, StoreError>>;

    /// Returns callers whose counters belong to these slots.
    fn combined(of: &[Option<usize>]) -> (Combined, Vec<ReplyReceiver>) {
        let mut combined = Combined::default();
        let receiver = of.iter().map(|slot| {
            let (sender, receiver) = oneshot::channel();
            let counter = slot.map(|slot| combined.add_acquisition("counter".into(), slot));
            combined.callers.push(Caller { sender, counter });
            receiver
        });
        let receiver = receiver.collect();
        (combined, receiver)
    }

    fn replies(receiver: Vec<ReplyReceiver>) -> Vec<(Value, Value)> {
        let reply = |mut receiver: ReplyReceiver| receiver.try_recv().unwrap().ok().unwrap();
        receiver.into_iter().map(reply).map(|reply| (reply.reply, reply.counter)).collect()
    }

    /// Red without: the difference from the last value, or the counter of each caller.
    #[test]
    fn each_acquisition_has_its_own_number_of_its_own_counter() {
        let (combined, receiver) = combined(&[Some(7), Some(3), None, Some(7)]);
        let sets = [Value::Okay, Value::Nil, Value::Int(1), Value::Okay];
        let increments = [Value::Int(102), Value::Int(7)];
        combined.reply_all(Ok(sets.iter().chain(&increments).cloned().collect()));
        let counters = [Value::Int(101), Value::Int(7), Value::Nil, Value::Int(102)];
        assert_eq!(replies(receiver), sets.into_iter().zip(counters).collect::<Vec<_>>());
    }

    /// Red without: the second `unwrap_or`, or the `unwrap_or_default` behind `get`.
    #[test]
    fn too_few_replies_are_no_acquisition() {
        let (combined, receiver) = combined(&[Some(0)]);
        combined.reply_all(Ok(vec![Value::Okay]));
        assert_eq!(replies(receiver), [(Value::Okay, Value::Nil)]);
        let (none, mut receiver) = self::combined(&[Some(0)]);
        none.reply_all(Ok(Vec::new()));
        assert!(receiver.remove(0).try_recv().is_err());
    }

    /// Red without: `checked_sub`.
    #[test]
    fn a_number_that_leaves_no_room_for_the_others_is_no_number() {
        let (combined, receiver) = combined(&[Some(0), Some(0)]);
        combined.reply_all(Ok(vec![Value::Okay, Value::Okay, Value::Int(i64::MIN)]));
        let counters = [Value::Nil, Value::Int(i64::MIN)];
        assert_eq!(replies(receiver), counters.map(|counter| (Value::Okay, counter)));
    }
}
