//! One pipeline for many tasks: concurrent callers queue their commands, and one task sends all
//! queued commands together.
//!
//! The literature calls this flat combining (Hendler, Incze, Shavit, Tzafrir, 2010). A caller
//! without company sends its own command, with no task between it and the connection. Combined
//! commands share the costs of the timer, the client's queue and the waking of tasks, and one
//! `INCRBY` behind them counts all acquisitions of a pipeline.
//!
//! **The order of commands.** A caller that gives up undoes its request with a separate command,
//! which must not overtake the one it undoes. So a command whose caller is gone is not sent, and a
//! caller that gives up waits until the queued commands have been handed to the client.

mod combined;
mod deletions;

use std::borrow::Cow;
use std::mem::{replace, take};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::{Cmd, RedisResult, Value};
use tokio::sync::{Notify, oneshot};
use tokio::task::coop::unconstrained;
use tokio::task::yield_now;

use super::call::Call;
use super::connection_slot::{ConnectionSlot, LiveConnection};
use super::node::until_demoted;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{Claim, StoreError};
use combined::{Combined, Entries, Entry};
use deletions::Deletion;

/// The number of concurrent callers from which commands are combined: fewer callers are faster
/// alone.
const MIN_CALLERS: usize = 4;

/// The most commands of one pipeline: the server works on them while other callers prepare more.
const MAX_BATCH: usize = 64;

/// The commands of many callers, for one connection.
#[derive(Default)]
pub(super) struct Combiner {
    queue: Mutex<Queue>,
    /// Held while queued commands are handed to the client.
    send_order: Mutex<()>,
    /// How many commands are queued and not yet handed to the client.
    unsent: AtomicUsize,
    /// How many callers have a request, combined or alone.
    callers: AtomicUsize,
    /// Signalled by the first queued command, by a pipeline in `sent`, and when the connection is
    /// given up.
    wake: Notify,
}

/// Queued commands, and pipelines for the task.
#[derive(Default)]
struct Queue {
    entries: Entries,
    /// Pipelines that callers have sent, for the task to complete.
    sent: Vec<InFlight>,
    /// The task has ended, and nothing is sent any more.
    is_over: bool,
}

/// What a command acquires: for this claim, counted by the fencing counter of this name and slot.
pub(super) struct Acquisition {
    pub(super) claim: Arc<Claim>,
    pub(super) counter: Cow<'static, str>,
    pub(super) slot: usize,
}

/// The reply to a command; an error of the server counts as a reply.
pub(super) struct CombinedReply {
    pub(super) reply: Value,
    /// The counter's value for this acquisition. `Nil` if the counter must be raised first, in
    /// which case nothing was sent.
    pub(super) counter: Value,
}

/// A caller with a request, and its connection.
pub(super) struct Caller<'a> {
    connection_slot: &'a Arc<ConnectionSlot>,
    live: &'a Arc<LiveConnection>,
}

/// A caller whose command is queued or under way.
struct PendingReply<'a> {
    combiner: &'a Combiner,
    reply: oneshot::Receiver<Result<CombinedReply, StoreError>>,
}

/// The task that sends. Its drop records that it has ended, for whatever reason.
struct SendTask(Arc<Combiner>);

type InFlight = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Combiner {
    /// Wakes the task, which ends: the connection is given up.
    pub(super) fn close(&self) {
        self.wake.notify_one();
    }

    /// Sends queued commands until the connection is given up.
    pub(super) fn run(
        self: Arc<Self>,
        connection_slot: Weak<ConnectionSlot>,
        live: Weak<LiveConnection>,
    ) -> impl Future<Output = ()> {
        // Made before the task is spawned, so that it is also dropped if a runtime drops the task
        // unpolled.
        SendTask(self).run(connection_slot, live)
    }

    /// Queues a command. Returns how many are queued, or 0 if the task has ended.
    fn enqueue(&self, put: impl FnOnce(&mut Entries)) -> usize {
        let mut queue = self.queue();
        if queue.is_over {
            return 0;
        }
        self.unsent.fetch_add(1, Ordering::AcqRel);
        put(&mut queue.entries);
        queue.entries.len()
    }

    /// Returns how many commands are sent without waiting for more: a quarter of the callers. If
    /// all were sent at once, all callers would wait while the server works, and then the server
    /// for the callers.
    fn batch_size(&self) -> usize {
        (self.callers.load(Ordering::Relaxed) / 4).clamp(MIN_CALLERS, MAX_BATCH)
    }

    /// Hands all queued commands to the client, as one pipeline.
    fn send(
        &self,
        connection_slot: &Arc<ConnectionSlot>,
        live: &Arc<LiveConnection>,
    ) -> Option<InFlight> {
        let _order = self.send_order();
        let entries = take(&mut self.queue().entries);
        let count = entries.len();
        let combined = Combined::of(entries, connection_slot, live);
        let sent = (!combined.is_empty()).then(|| {
            // Tokio's budget must not delay the first poll, which hands the commands to the client.
            let mut sent: InFlight =
                Box::pin(unconstrained(combined.send(connection_slot.clone(), live.clone())));
            let first = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            first.is_pending().then_some(sent)
        });
        self.unsent.fetch_sub(count, Ordering::Release);
        sent.flatten()
    }

    /// Sends the queued commands first, so that a command that is sent alone does not overtake
    /// them.
    pub(super) fn send_first(
        &self,
        connection_slot: &Arc<ConnectionSlot>,
        live: &Arc<LiveConnection>,
    ) {
        if self.unsent.load(Ordering::Acquire) > 0
            && let Some(sent) = self.send(connection_slot, live)
        {
            self.track(sent);
        }
    }

    /// Leaves a pipeline that a caller has sent to the task. If the task has ended, the pipeline
    /// ends too, and its callers get an error from their channels.
    fn track(&self, sent: InFlight) {
        let mut queue = self.queue();
        if !queue.is_over {
            queue.sent.push(sent);
            drop(queue);
            self.wake.notify_one();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No panic can leave it half changed, so a poisoned lock is still usable.
        self.queue.lock()
    }

    fn send_order(&self) -> MutexGuard<'_, ()> {
        self.send_order.lock()
    }
}

impl<'a> Caller<'a> {
    /// Counts one more caller, until this is dropped.
    pub(super) fn of(
        connection_slot: &'a Arc<ConnectionSlot>,
        live: &'a Arc<LiveConnection>,
    ) -> Self {
        live.combiner.callers.fetch_add(1, Ordering::Relaxed);
        Self { connection_slot, live }
    }

    /// Returns whether to combine its command: there are many callers, or earlier commands are
    /// unsent.
    pub(super) fn should_combine(&self) -> bool {
        let Combiner { callers, unsent, .. } = &*self.live.combiner;
        callers.load(Ordering::Relaxed) >= MIN_CALLERS || unsent.load(Ordering::Acquire) > 0
    }

    /// Sends a command that acquires no lock, combined or alone. An error of the server is a reply.
    pub(super) async fn send(&self, command: Cmd) -> Result<RedisResult<Value>, StoreError> {
        if self.should_combine() {
            let CombinedReply { reply, .. } = self.send_combined(command, None).await?;
            return Ok(reply.extract_error());
        }
        let connection = &mut self.live.connection();
        let reply = command.query_async(connection);
        Ok(until_demoted(self.connection_slot, &self.live.demotion, reply).await)
    }

    /// Loads a script that the server has forgotten, and sends it.
    pub(super) async fn load_and_send(
        &self,
        script: Call<'_>,
    ) -> Result<RedisResult<Value>, StoreError> {
        let connection = &mut self.live.connection();
        let loaded =
            until_demoted(self.connection_slot, &self.live.demotion, script.load(connection)).await;
        self.connection_slot.note(self.live, loaded)?;
        self.send(script.into_command()).await
    }

    /// Queues a command to be sent together with others.
    pub(super) async fn send_combined(
        &self,
        command: Cmd,
        acquisition: Option<Acquisition>,
    ) -> Result<CombinedReply, StoreError> {
        self.wait_for(|entries, caller| {
            entries.commands.push(Entry { command, acquisition, caller });
        })
        .await
    }

    /// Deletes a claim's lock together with others, if it has the claim's value. Returns the reply
    /// of `delete.lua`; an error may concern all of them.
    pub(super) async fn delete(
        &self,
        claim: Arc<Claim>,
        slot: usize,
    ) -> Result<RedisResult<Value>, StoreError> {
        let reply = self.wait_for(|entries, caller| {
            entries.deletions.push(Deletion { claim, slot, caller });
        });
        Ok(reply.await?.reply.extract_error())
    }

    async fn wait_for(
        &self,
        put: impl FnOnce(&mut Entries, oneshot::Sender<Result<CombinedReply, StoreError>>),
    ) -> Result<CombinedReply, StoreError> {
        let combiner = &*self.live.combiner;
        let (caller, reply) = oneshot::channel();
        let mut pending = PendingReply { combiner, reply };
        match combiner.enqueue(|entries| put(entries, caller)) {
            1 => combiner.wake.notify_one(),
            queued if queued >= combiner.batch_size() => {
                if let Some(sent) = combiner.send(self.connection_slot, self.live) {
                    combiner.track(sent);
                }
            }
            _ => {}
        }
        let reply = (&mut pending.reply).await;
        reply.unwrap_or_else(|_| Err(StoreError::new("the connection was closed")))
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.live.combiner.callers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for PendingReply<'_> {
    /// The caller gave up: after this its command has been sent, or never is.
    fn drop(&mut self) {
        if !self.reply.is_terminated() {
            self.reply.close();
            drop(self.combiner.send_order());
        }
    }
}

impl SendTask {
    async fn run(self, connection_slot: Weak<ConnectionSlot>, live: Weak<LiveConnection>) {
        let mut in_flight = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(()) = in_flight.next() => {}
                () = self.0.wake.notified() => {
                    in_flight.extend(take(&mut self.0.queue().sent));
                    // Lets other ready tasks queue their commands.
                    yield_now().await;
                    let (Some(connection_slot), Some(live)) = (connection_slot.upgrade(), live.upgrade()) else { return };
                    in_flight.extend(self.0.send(&connection_slot, &live));
                }
            }
        }
    }
}

impl Drop for SendTask {
    fn drop(&mut self) {
        let over = Queue { is_over: true, ..Queue::default() };
        // Each caller gets an error from its channel. A pipeline in `sent` holds the connection, which holds the
        // combiner: left here, the three would keep each other alive.
        let left = replace(&mut *self.0.queue(), over);
        // Outside the lock, because the drop wakes callers and may end the connection.
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    /// The undo could overtake the command that it undoes.
    ///
    /// Red without: `send_order` in the drop of `PendingReply`.
    #[test]
    fn a_waiter_that_gives_up_waits_until_commands_have_been_handed_off() {
        let (combiner, handed_off, started) =
            (Combiner::default(), AtomicBool::new(false), Barrier::new(2));
        let (_caller, reply) = oneshot::channel();
        thread::scope(|scope| {
            let send_order = combiner.send_order();
            scope.spawn(|| {
                let pending = PendingReply { combiner: &combiner, reply };
                started.wait();
                drop(pending);
                assert!(handed_off.load(Ordering::SeqCst));
            });
            started.wait();
            // The other thread runs, and would have finished by now.
            (0..1_000).for_each(|_| thread::yield_now());
            handed_off.store(true, Ordering::SeqCst);
            drop(send_order);
        });
    }

    /// Red without: `is_over`, or the entries in what is taken out, in the drop of `SendTask`; or
    /// `SendTask` at the beginning of `run`.
    #[test]
    fn a_caller_that_asks_learns_when_no_process_sends_any_more() {
        let combiner = Arc::<Combiner>::default();
        let enqueue = || {
            let (caller, reply) = oneshot::channel();
            let entry = Entry { command: redis::cmd("PING"), acquisition: None, caller };
            combiner.enqueue(|entries| entries.commands.push(entry));
            reply
        };
        let mut early = enqueue();
        // A runtime that ends drops its tasks unpolled.
        drop(combiner.clone().run(Weak::new(), Weak::new()));
        for reply in [&mut early, &mut enqueue()] {
            assert_eq!(reply.try_recv().err(), Some(TryRecvError::Closed));
        }
    }

    /// A pipeline holds the connection, which holds the combiner: a combiner that keeps a pipeline is never freed.
    ///
    /// Red without: the pipelines in what the drop of `SendTask` takes out, or `is_over` in
    /// `track`.
    #[test]
    fn what_was_sent_ends_with_the_task() {
        let combiner = Arc::<Combiner>::default();
        let connection = Arc::new(());
        let send = || {
            let held = (combiner.clone(), connection.clone());
            combiner.track(Box::pin(async move {
                pending::<()>().await;
                drop(held);
            }));
        };
        send();
        assert_eq!(Arc::strong_count(&connection), 2);
        drop(SendTask(combiner.clone()));
        send();
        assert_eq!((Arc::strong_count(&connection), Arc::strong_count(&combiner)), (1, 1));
    }
}
