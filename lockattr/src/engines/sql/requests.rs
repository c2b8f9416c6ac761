//! Requests of many callers for one connection: how many statements are in flight, which request is
//! next, and which requests share a statement.
//!
//! A caller without company sends its own statement, with no task between it and the client. While
//! [`IN_FLIGHT`] statements have no reply, further requests wait here, and a statement that ends
//! starts the next one, for as many waiting requests as fit into it. So load makes statements
//! larger and not more numerous, and a request that waits here was not sent: the server is not to
//! blame for that time.
//!
//! **The order of requests.** A caller that gives up undoes its request by another one, which must
//! not overtake it. So a request whose caller has gone is not sent, and a statement is handed to the
//! client while the queue is locked.

use std::array;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::coop::unconstrained;

use crate::platform::sync::Mutex;
use crate::store::StoreError;

/// How many statements of a connection have no reply at most. While the server executes one, the
/// next one is on its way.
const IN_FLIGHT: usize = 2;

/// Most requests of one statement. A larger one would keep too many locks waiting for its commit.
const MAX_BATCH: usize = 64;

/// Renewals come first, because their leases end. Releases come next, because others wait for them.
const PRIORITIES: usize = 3;

/// A request that may share a statement with others.
pub(in crate::engines) trait Request: Send + 'static {
    type Reply: Send + 'static;

    /// Smaller than [`PRIORITIES`]. Requests with a smaller one are sent first.
    fn priority(&self) -> usize;

    /// Whether both fit into one statement.
    fn joins(&self, other: &Self) -> bool;

    /// Whether it is sent although its caller has gone.
    fn outlives_caller(&self) -> bool;
}

/// Executes requests over one connection.
pub(in crate::engines) trait Execute<R: Request>:
    Clone + Send + Sync + 'static
{
    /// Executes these requests in one statement, and returns a reply to each. The first poll hands
    /// the statement to the client.
    fn execute(&self, batch: Vec<R>) -> Statement<R>;

    /// Whether the connection can be used for another statement.
    fn is_usable(&self) -> bool;
}

/// A statement under way.
pub(in crate::engines) type Statement<R> = Pin<Box<dyn Future<Output = Replies<R>> + Send>>;

type Replies<R> = Result<Vec<<R as Request>::Reply>, StoreError>;

type Caller<R> = oneshot::Sender<Result<<R as Request>::Reply, StoreError>>;

/// The requests for one connection.
pub(in crate::engines) struct Requests<R: Request>(Mutex<Queue<R>>);

struct Queue<R: Request> {
    waiting: [VecDeque<(R, Caller<R>)>; PRIORITIES],
    in_flight: usize,
    /// The connection is given up: nothing is sent any more.
    is_closed: bool,
}

impl<R: Request> Default for Requests<R> {
    fn default() -> Self {
        let waiting = array::from_fn(|_| VecDeque::new());
        Self(Mutex::new(Queue { waiting, in_flight: 0, is_closed: false }))
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
            if queue.may_send() && queue.is_empty() {
                queue.in_flight += 1;
                Err(request)
            } else {
                Ok(queue.push(request))
            }
        };
        match reply {
            Ok(reply) => {
                self.start(executor);
                reply.await.unwrap_or_else(|_| Err(not_sent()))
            }
            Err(request) => {
                let statement = executor.execute(vec![request]);
                let mut lone = LoneStatement {
                    requests: self.clone(),
                    executor: executor.clone(),
                    statement: Some(statement),
                };
                lone.replies().await.and_then(|mut replies| replies.pop().ok_or_else(too_short))
            }
        }
    }

    /// Sends requests together with those that wait, and returns a reply to each.
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

    /// Starts a statement for waiting requests, if one more may be in flight.
    fn start<E: Execute<R>>(self: &Arc<Self>, executor: &E) {
        loop {
            let mut queue = self.0.lock();
            if !queue.may_send() || queue.is_empty() {
                return;
            }
            queue.in_flight += 1;
            let next = queue.next(executor);
            drop(queue);
            let Some(next) = next else {
                self.0.lock().in_flight -= 1;
                return;
            };
            self.complete(executor, next);
        }
    }

    /// A statement has ended: starts the next one in its place.
    fn ended<E: Execute<R>>(self: &Arc<Self>, executor: &E) {
        if !executor.is_usable() {
            self.close();
        }
        let mut queue = self.0.lock();
        let next = queue.next(executor);
        if next.is_none() {
            queue.in_flight -= 1;
        }
        drop(queue);
        if let Some(next) = next {
            self.complete(executor, next);
        }
    }

    /// Completes a statement, and then those that wait for its place, in a task.
    fn complete<E: Execute<R>>(self: &Arc<Self>, executor: &E, next: Combined<R>) {
        let Ok(runtime) = Handle::try_current() else { return self.close() };
        let task =
            CombinedTask { requests: self.clone(), executor: executor.clone(), next: Some(next) };
        runtime.spawn(task.run());
    }

    /// The connection is given up. The callers whose requests were not sent learn that.
    pub(in crate::engines) fn close(&self) {
        let waiting = {
            let mut queue = self.0.lock();
            queue.is_closed = true;
            queue.waiting.each_mut().map(std::mem::take)
        };
        // Outside the mutex, because the drop wakes the callers.
        drop(waiting);
    }
}

impl<R: Request> Queue<R> {
    fn may_send(&self) -> bool {
        self.in_flight < IN_FLIGHT && !self.is_closed
    }

    fn is_empty(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty)
    }

    fn push(&mut self, request: R) -> oneshot::Receiver<Result<R::Reply, StoreError>> {
        let (caller, reply) = oneshot::channel();
        if !self.is_closed {
            self.waiting[request.priority()].push_back((request, caller));
        }
        reply
    }

    /// Hands the next statement to the client: the first request that waits, and those behind it
    /// that fit into its statement.
    fn next<E: Execute<R>>(&mut self, executor: &E) -> Option<Combined<R>> {
        let (mut batch, mut callers) = (Vec::new(), Vec::new());
        for waiting in &mut self.waiting {
            while let Some((request, caller)) = waiting.front() {
                if caller.is_closed() && !request.outlives_caller() {
                    waiting.pop_front();
                    continue;
                }
                if batch.len() == MAX_BATCH || batch.first().is_some_and(|it| !request.joins(it)) {
                    break;
                }
                let Some((request, caller)) = waiting.pop_front() else { break };
                batch.push(request);
                callers.push(caller);
            }
            if !batch.is_empty() {
                break;
            }
        }
        (!batch.is_empty()).then(|| {
            // Tokio's budget must not delay the first poll.
            let mut statement: Statement<R> = Box::pin(unconstrained(executor.execute(batch)));
            let mut context = Context::from_waker(Waker::noop());
            match statement.as_mut().poll(&mut context) {
                Poll::Ready(replies) => {
                    Combined { statement: Box::pin(async { replies }), callers }
                }
                Poll::Pending => Combined { statement, callers },
            }
        })
    }
}

/// The statement of a caller that sends it by itself. If the caller gives up, a task completes it,
/// because it is in flight until it has its reply.
struct LoneStatement<R: Request, E: Execute<R>> {
    requests: Arc<Requests<R>>,
    executor: E,
    statement: Option<Statement<R>>,
}

impl<R: Request, E: Execute<R>> LoneStatement<R, E> {
    async fn replies(&mut self) -> Replies<R> {
        let Some(statement) = &mut self.statement else { return Err(not_sent()) };
        let replies = statement.await;
        self.statement = None;
        replies
    }
}

impl<R: Request, E: Execute<R>> Drop for LoneStatement<R, E> {
    fn drop(&mut self) {
        match self.statement.take() {
            Some(statement) => {
                let combined = Combined { statement, callers: Vec::new() };
                self.requests.complete(&self.executor, combined);
            }
            None => self.requests.ended(&self.executor),
        }
    }
}

/// A statement for several callers.
struct Combined<R: Request> {
    statement: Statement<R>,
    callers: Vec<Caller<R>>,
}

/// The task that completes statements. If its runtime ends first, no request is sent any more.
struct CombinedTask<R: Request, E: Execute<R>> {
    requests: Arc<Requests<R>>,
    executor: E,
    next: Option<Combined<R>>,
}

impl<R: Request, E: Execute<R>> CombinedTask<R, E> {
    async fn run(mut self) {
        while let Some(Combined { statement, callers }) = &mut self.next {
            let replies = statement.await;
            reply_all::<R>(std::mem::take(callers), replies);
            if !self.executor.is_usable() {
                self.requests.close();
            }
            let mut queue = self.requests.0.lock();
            self.next = queue.next(&self.executor);
            if self.next.is_none() {
                queue.in_flight -= 1;
            }
        }
    }
}

impl<R: Request, E: Execute<R>> Drop for CombinedTask<R, E> {
    fn drop(&mut self) {
        if self.next.is_some() {
            self.requests.close();
        }
    }
}

fn reply_all<R: Request>(callers: Vec<Caller<R>>, replies: Replies<R>) {
    match replies {
        Ok(replies) => {
            let mut replies = replies.into_iter();
            for caller in callers {
                // A caller that gave up undoes its request.
                caller.send(replies.next().ok_or_else(too_short)).ok();
            }
        }
        Err(error) => callers.into_iter().for_each(|caller| {
            caller.send(Err(error.clone())).ok();
        }),
    }
}

fn not_sent() -> StoreError {
    StoreError::new("the connection ended before the request was sent").not_sent()
}

fn too_short() -> StoreError {
    StoreError::new("the server's reply was too short")
}

#[cfg(test)]
mod tests;
