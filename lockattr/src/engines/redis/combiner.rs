//! One pipeline for many tasks: a caller that asks while others do adds its command, and one task sends all that
//! lie there together.
//!
//! It is what the literature calls flat combining (Hendler, Incze, Shavit, Tzafrir, 2010). A caller that asks
//! alone sends by itself, and has no task between it and the connection. A crowd shares what each command
//! would cost by itself: the timer, the client's queue, the waking of tasks; and all acquisitions of a pipeline are
//! numbered by one `INCRBY` behind them.
//!
//! **The order of commands.** A caller that gives up undoes what it has asked for, by a command of its own. That
//! must not overtake the one it undoes: so a command whose caller has gone is not sent, and who goes waits
//! until what lies there has been handed to the client.

mod combined;
mod deletions;

use std::borrow::Cow;
use std::mem::{replace, take};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};

use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::{Cmd, RedisResult, Value};
use tokio::sync::{Notify, oneshot};
use tokio::task::coop::unconstrained;
use tokio::task::yield_now;

use super::call::Call;
use super::connection_slot::{ConnectionSlot, LiveConnection};
use super::node::until_demoted;
use crate::store::{Claim, StoreError};
use combined::{Combined, Entries, Entry};
use deletions::Deletion;

/// So many callers ask at once before their commands are combined: fewer are quicker alone.
const CROWD: usize = 4;

/// The most commands of one pipeline: the server works on them while others still ask.
const LARGEST: usize = 64;

/// The commands of many callers, for one connection.
#[derive(Default)]
pub(super) struct Combiner {
    waiting: Mutex<Waiting>,
    /// Locked while commands are on their way from here to the client.
    hands_on: Mutex<()>,
    /// How many have been put down and not been handed to the client.
    unsent: AtomicUsize,
    /// How many callers ask, combined or alone.
    callers: AtomicUsize,
    /// Signalled by the first that lies there, by what was sent, and when the connection is given up.
    wake: Notify,
}

/// What lies there.
#[derive(Default)]
struct Waiting {
    entries: Entries,
    /// What callers have sent, for the task to see through.
    sent: Vec<UnderWay>,
    /// No process sends it any more.
    is_over: bool,
}

/// The counter that numbers an acquisition, and its slot.
pub(super) type Counter = (Cow<'static, str>, usize);

/// What a command was answered, errors of the server among it.
pub(super) struct Answer {
    pub(super) reply: Value,
    /// What the counter came to for this acquisition: nothing if the counter has to be raised first, and then
    /// nothing was sent.
    pub(super) number: Value,
}

/// A caller that asks, and over which connection.
pub(super) struct Caller<'a> {
    connection_slot: &'a Arc<ConnectionSlot>,
    live: &'a Arc<LiveConnection>,
}

/// A caller whose command lies there or is under way.
struct Waits<'a> {
    combiner: &'a Combiner,
    answer: oneshot::Receiver<Result<Answer, StoreError>>,
}

/// The task that sends. Its end, however it comes, is noted.
struct Sender(Arc<Combiner>);

type UnderWay = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Combiner {
    /// No command comes any more.
    pub(super) fn close(&self) {
        self.wake.notify_one();
    }

    /// Sends what lies there, again and again, until the connection is given up.
    pub(super) fn run(
        self: Arc<Self>,
        connection_slot: Weak<ConnectionSlot>,
        live: Weak<LiveConnection>,
    ) -> impl Future<Output = ()> {
        // Made before the task is spawned, so that a runtime that drops it unpolled is noticed too.
        Sender(self).run(connection_slot, live)
    }

    /// Puts something down. How many lie there.
    fn put_down(&self, put: impl FnOnce(&mut Entries)) -> usize {
        let mut waiting = self.waiting();
        if waiting.is_over {
            return 0;
        }
        self.unsent.fetch_add(1, Ordering::AcqRel);
        put(&mut waiting.entries);
        waiting.entries.len()
    }

    /// So many go without waiting for more: a quarter of those who ask. If all went at once, all would wait while the
    /// server works, and the server would wait while they ask again.
    fn enough(&self) -> usize {
        (self.callers.load(Ordering::Relaxed) / 4).clamp(CROWD, LARGEST)
    }

    /// Hands all that lies there to the client, as one pipeline.
    fn send(
        &self,
        connection_slot: &Arc<ConnectionSlot>,
        live: &Arc<LiveConnection>,
    ) -> Option<UnderWay> {
        let _order = self.hands_on();
        let entries = take(&mut self.waiting().entries);
        let count = entries.len();
        let combined = Combined::of(entries, connection_slot, live);
        let sent = (!combined.is_empty()).then(|| {
            // Tokio's budget must not hold it back: the first poll hands the commands over.
            let mut sent: UnderWay =
                Box::pin(unconstrained(combined.ask(connection_slot.clone(), live.clone())));
            let first = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            first.is_pending().then_some(sent)
        });
        self.unsent.fetch_sub(count, Ordering::Release);
        sent.flatten()
    }

    /// Sends what lies there before a command that goes by itself, which would overtake it.
    pub(super) fn send_first(
        &self,
        connection_slot: &Arc<ConnectionSlot>,
        live: &Arc<LiveConnection>,
    ) {
        if self.unsent.load(Ordering::Acquire) > 0
            && let Some(sent) = self.send(connection_slot, live)
        {
            self.see_through(sent);
        }
    }

    /// Leaves a pipeline that a caller has sent to the task. If the task has ended, the pipeline ends too, and its
    /// callers get an error from their channels.
    fn see_through(&self, sent: UnderWay) {
        let mut waiting = self.waiting();
        if !waiting.is_over {
            waiting.sent.push(sent);
            drop(waiting);
            self.wake.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hands_on(&self) -> MutexGuard<'_, ()> {
        self.hands_on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Caller<'a> {
    /// One more caller, for as long as this lives.
    pub(super) fn of(
        connection_slot: &'a Arc<ConnectionSlot>,
        live: &'a Arc<LiveConnection>,
    ) -> Self {
        live.combiner.callers.fetch_add(1, Ordering::Relaxed);
        Self { connection_slot, live }
    }

    /// Whether its command is to go with others: many ask, or some that came before have not been sent.
    pub(super) fn is_in_a_crowd(&self) -> bool {
        let Combiner { callers, unsent, .. } = &*self.live.combiner;
        callers.load(Ordering::Relaxed) >= CROWD || unsent.load(Ordering::Acquire) > 0
    }

    /// Sends a command that takes no lock: together with others in a crowd, else by itself. An error of the server
    /// is an answer.
    pub(super) async fn send(&self, command: Cmd) -> Result<RedisResult<Value>, StoreError> {
        if self.is_in_a_crowd() {
            let Answer { reply, .. } = self.ask(command, None).await?;
            return Ok(reply.extract_error());
        }
        let connection = &mut self.live.connection();
        let answer = command.query_async(connection);
        Ok(until_demoted(self.connection_slot, &self.live.demotion, answer).await)
    }

    /// Sends a script that the server has forgotten.
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

    /// Has a command sent together with others, and numbered if it names a counter.
    pub(super) async fn ask(
        &self,
        command: Cmd,
        counter: Option<Counter>,
    ) -> Result<Answer, StoreError> {
        self.wait_for(|entries, caller| {
            entries.commands.push(Entry { command, counter, caller });
        })
        .await
    }

    /// Has the lock of a claim deleted together with others, if it has the claim's value: what `delete.lua` answers.
    /// An error may be about all of them.
    pub(super) async fn delete(
        &self,
        claim: Arc<Claim>,
        slot: usize,
    ) -> Result<RedisResult<Value>, StoreError> {
        let answer = self.wait_for(|entries, caller| {
            entries.deletions.push(Deletion { claim, slot, caller });
        });
        Ok(answer.await?.reply.extract_error())
    }

    async fn wait_for(
        &self,
        put: impl FnOnce(&mut Entries, oneshot::Sender<Result<Answer, StoreError>>),
    ) -> Result<Answer, StoreError> {
        let combiner = &*self.live.combiner;
        let (caller, answer) = oneshot::channel();
        let mut waits = Waits { combiner, answer };
        match combiner.put_down(|entries| put(entries, caller)) {
            1 => combiner.wake.notify_one(),
            enough if enough >= combiner.enough() => {
                if let Some(sent) = combiner.send(self.connection_slot, self.live) {
                    combiner.see_through(sent);
                }
            }
            _ => {}
        }
        let answer = (&mut waits.answer).await;
        answer.unwrap_or_else(|_| Err(StoreError::new("the connection was given up")))
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.live.combiner.callers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Waits<'_> {
    /// Its caller gave up: from here on its command is sent already, or never.
    fn drop(&mut self) {
        if !self.answer.is_terminated() {
            self.answer.close();
            drop(self.combiner.hands_on());
        }
    }
}

impl Sender {
    async fn run(self, connection_slot: Weak<ConnectionSlot>, live: Weak<LiveConnection>) {
        let mut under_way = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(()) = under_way.next() => {}
                () = self.0.wake.notified() => {
                    under_way.extend(take(&mut self.0.waiting().sent));
                    // Others that are ready to ask put down what they ask.
                    yield_now().await;
                    let (Some(connection_slot), Some(live)) = (connection_slot.upgrade(), live.upgrade()) else { return };
                    under_way.extend(self.0.send(&connection_slot, &live));
                }
            }
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let over = Waiting { is_over: true, ..Waiting::default() };
        // Each caller gets an error from its channel. A pipeline in `sent` holds the connection, which holds the
        // combiner: left here, the three would keep each other alive.
        let left = replace(&mut *self.0.waiting(), over);
        // The lock is open again: the drop wakes callers and may end the connection.
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

    /// Its undo could overtake what it undoes.
    ///
    /// Red without: `hands_on` in the drop of `Waits`.
    #[test]
    fn a_waiter_that_gives_up_waits_until_commands_have_been_handed_off() {
        let (combiner, handed_over, begins) =
            (Combiner::default(), AtomicBool::new(false), Barrier::new(2));
        let (_caller, answer) = oneshot::channel();
        thread::scope(|scope| {
            let hands_on = combiner.hands_on();
            scope.spawn(|| {
                let waits = Waits { combiner: &combiner, answer };
                begins.wait();
                drop(waits);
                assert!(handed_over.load(Ordering::SeqCst));
            });
            begins.wait();
            // The other thread has its turn, and would have gone on long ago.
            (0..1_000).for_each(|_| thread::yield_now());
            handed_over.store(true, Ordering::SeqCst);
            drop(hands_on);
        });
    }

    /// Red without: `is_over`, or the entries in what is taken out, in the drop of `Sender`; or `Sender` from the
    /// beginning of `run`.
    #[test]
    fn a_caller_that_asks_learns_when_no_process_sends_any_more() {
        let combiner = Arc::<Combiner>::default();
        let ask = || {
            let (caller, answer) = oneshot::channel();
            let entry = Entry { command: redis::cmd("PING"), counter: None, caller };
            combiner.put_down(|entries| entries.commands.push(entry));
            answer
        };
        let mut early = ask();
        // A runtime that has ended drops its tasks unpolled.
        drop(combiner.clone().run(Weak::new(), Weak::new()));
        for answer in [&mut early, &mut ask()] {
            assert_eq!(answer.try_recv().err(), Some(TryRecvError::Closed));
        }
    }

    /// A pipeline holds the connection, which holds the combiner: a combiner that keeps a pipeline is never freed.
    ///
    /// Red without: the pipelines in what the drop of `Sender` takes out, or `is_over` in `see_through`.
    #[test]
    fn what_was_sent_ends_with_the_task() {
        let combiner = Arc::<Combiner>::default();
        let connection = Arc::new(());
        let send = || {
            let held = (combiner.clone(), connection.clone());
            combiner.see_through(Box::pin(async move {
                pending::<()>().await;
                drop(held);
            }));
        };
        send();
        assert_eq!(Arc::strong_count(&connection), 2);
        drop(Sender(combiner.clone()));
        send();
        assert_eq!((Arc::strong_count(&connection), Arc::strong_count(&combiner)), (1, 1));
    }
}
