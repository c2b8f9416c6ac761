//! Requests of many callers for one connection: how many statements are in flight, which request is
//! next, and which requests share a statement.
//!
//! A caller without company sends its own statement, with no task between it and the client. While
//! [`IN_FLIGHT`](Execute::IN_FLIGHT) statements have no reply, further requests wait here, and a statement that ends
//! starts the next one, for as many waiting requests as fit into it. So load makes statements
//! larger and not more numerous, and a request that waits here was not sent: the server is not to
//! blame for that time.
//!
//! **Callers that do not poll.** A caller may keep a future and not poll it, as a `select!` in a loop
//! can. Its statement would keep its place, and the renewals of all others would wait. So once a
//! request waits, a task completes the statements that callers have sent by themselves.
//!
//! **The order of requests.** A caller that gives up undoes its request by another one, which must
//! not overtake it. So a request whose caller has gone is not sent, and a statement is handed to the
//! client while the queue is locked.

mod in_flight;
mod lone;
mod queue;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::platform::sync::Mutex;
use crate::store::StoreError;
use crate::store::slots::is_current;
use in_flight::{Combined, CombinedTask};
use lone::{LoneCaller, LoneStatement};
use queue::Queue;

/// A request that may share a statement with others.
pub(in crate::engines) trait Request: Send + 'static {
    type Reply: Send + 'static;

    /// Smaller than [`PRIORITIES`](queue::PRIORITIES). Requests with a smaller one are sent first.
    fn priority(&self) -> usize;

    /// Whether it fits into one statement with these.
    fn joins(&self, others: &[Self]) -> bool
    where
        Self: Sized;

    /// Whether it is sent although its caller has gone.
    fn outlives_caller(&self) -> bool;
}

/// Executes requests over one connection.
pub(in crate::engines) trait Execute<R: Request>:
    Clone + Send + Sync + 'static
{
    /// How many statements have no reply at most. With two, the next one is on its way while the
    /// server executes the first.
    const IN_FLIGHT: usize = 2;

    /// How many of these requests that wait share the next statement.
    fn share(waiting: usize) -> usize {
        waiting
    }

    /// Executes these requests in one statement, and returns a reply to each. The first poll hands
    /// the statement to the client. The queue is locked meanwhile, so it must not send a request.
    fn execute(&self, batch: Vec<R>) -> Statement<R>;

    /// Whether the connection can be used for another statement.
    fn is_usable(&self) -> bool;

    /// The runtime that drives the connection. It polls every statement but those of its own
    /// callers, because another one may stop in the middle.
    fn runtime(&self) -> &Handle;
}

/// A statement under way.
pub(in crate::engines) type Statement<R> = Pin<Box<dyn Future<Output = Replies<R>> + Send>>;

type Replies<R> = Result<Vec<<R as Request>::Reply>, StoreError>;

type Caller<R> = oneshot::Sender<Result<<R as Request>::Reply, StoreError>>;

/// The requests for one connection.
pub(in crate::engines) struct Requests<R: Request>(Mutex<Queue<R>>);

impl<R: Request> Default for Requests<R> {
    fn default() -> Self {
        Self(Mutex::new(Queue::new()))
    }
}

impl<R: Request> Requests<R> {
    /// Sends a request, alone if no other request waits, and returns its reply.
    pub(in crate::engines) async fn run<E: Execute<R>>(
        self: &Arc<Self>,
        executor: &E,
        request: R,
    ) -> Result<R::Reply, StoreError> {
        let reply = {
            let mut queue = self.0.lock();
            if queue.may_send(E::IN_FLIGHT) && queue.is_empty() && is_current(executor.runtime()) {
                Err(queue.send_alone(executor, request))
            } else {
                Ok(queue.push(request))
            }
        };
        match reply {
            Ok(reply) => {
                self.start(executor);
                let mut pending = PendingReply { requests: self, reply };
                (&mut pending.reply).await.unwrap_or_else(|_| Err(not_sent()))
            }
            Err(lone) => LoneCaller::new(self, executor, lone).reply().await,
        }
    }

    /// Sends requests together with those that wait, and returns a reply to each.
    #[cfg(any(test, feature = "postgres"))]
    pub(in crate::engines) async fn run_all<E: Execute<R>>(
        self: &Arc<Self>,
        executor: &E,
        requests: impl Iterator<Item = R>,
    ) -> Vec<Result<R::Reply, StoreError>> {
        let replies: Vec<_> = {
            let mut queue = self.0.lock();
            requests.map(|request| queue.push(request)).collect()
        };
        self.start(executor);
        let mut results = Vec::with_capacity(replies.len());
        for reply in replies {
            results.push(reply.await.unwrap_or_else(|_| Err(not_sent())));
        }
        results
    }

    /// Starts statements for waiting requests, as many as may be in flight. The others wait for
    /// those in flight, so tasks complete these, whatever their callers do.
    fn start<E: Execute<R>>(self: &Arc<Self>, executor: &E) {
        loop {
            let mut queue = self.0.lock();
            if queue.is_empty() {
                return;
            }
            if !queue.may_send(E::IN_FLIGHT) {
                let alone = std::mem::take(&mut queue.alone);
                drop(queue);
                let _timers = executor.runtime().enter();
                for combined in alone.iter().filter_map(|lone| lone.take_over()) {
                    self.complete(executor, combined);
                }
                return;
            }
            queue.in_flight += 1;
            let next = queue.next_in_place(executor);
            drop(queue);
            let Some(next) = next else { return };
            self.complete(executor, next);
        }
    }

    /// A caller's own statement has ended: starts the next one in its place.
    fn ended<E: Execute<R>>(self: &Arc<Self>, executor: &E, lone: &Arc<LoneStatement<R>>) {
        self.0.lock().forget(lone);
        if let Some(next) = self.after(executor) {
            self.complete(executor, next);
        }
    }

    /// The next statement, in the place of one that has ended.
    fn after<E: Execute<R>>(&self, executor: &E) -> Option<Combined<R>> {
        if !executor.is_usable() {
            self.close();
        }
        self.0.lock().next_in_place(executor)
    }

    /// Completes a statement, and then those that wait for its place, in a task.
    fn complete<E: Execute<R>>(self: &Arc<Self>, executor: &E, next: Combined<R>) {
        executor.runtime().spawn(CombinedTask::new(self, executor, next).run());
    }

    /// The connection is given up. The callers whose requests were not sent learn that.
    fn close(&self) {
        let waiting = {
            let mut queue = self.0.lock();
            queue.is_closed = true;
            queue.waiting.each_mut().map(std::mem::take)
        };
        // Outside the mutex, because the drop wakes the callers.
        drop(waiting);
    }
}

/// A caller whose request waits or is under way.
struct PendingReply<'a, R: Request> {
    requests: &'a Requests<R>,
    reply: oneshot::Receiver<Result<R::Reply, StoreError>>,
}

impl<R: Request> Drop for PendingReply<'_, R> {
    /// The caller gave up: after this its request has been sent, or never is.
    fn drop(&mut self) {
        if !self.reply.is_terminated() {
            self.reply.close();
            drop(self.requests.0.lock());
        }
    }
}

/// The runtime of the connection has shut down with a statement under way.
fn shut_down() -> StoreError {
    StoreError::new("the tokio runtime that sent the request has shut down")
}

fn not_sent() -> StoreError {
    StoreError::new("the connection ended before the request was sent").not_sent()
}

fn too_short() -> StoreError {
    StoreError::new("the server's reply was too short")
}
