//! The statement of a caller that sends it by itself.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::in_flight::Combined;
use super::{Execute, Request, Requests, Statement, shut_down, too_short};
use crate::platform::sync::Mutex;
use crate::store::StoreError;

pub(super) struct LoneStatement<R: Request>(Mutex<State<R>>);

enum State<R: Request> {
    /// The caller completes it, who is woken by this.
    Callers(Statement<R>, Waker),
    /// A task completes it.
    TakenOver(oneshot::Receiver<Result<R::Reply, StoreError>>),
    /// The caller has completed it.
    Replied,
}

impl<R: Request> LoneStatement<R> {
    pub(super) fn new(statement: Statement<R>) -> Self {
        Self(Mutex::new(State::Callers(statement, Waker::noop().clone())))
    }

    /// Takes it from its caller, for a task that completes it. `None` if it has its reply.
    pub(super) fn take_over(&self) -> Option<Combined<R>> {
        let mut state = self.0.lock();
        if !matches!(*state, State::Callers(..)) {
            return None;
        }
        let (caller, reply) = oneshot::channel();
        let before = std::mem::replace(&mut *state, State::TakenOver(reply));
        let State::Callers(statement, waker) = before else { return None };
        // Before its caller can give up, and undo it.
        let combined = Combined::sent(statement, vec![caller]);
        drop(state);
        waker.wake();
        Some(combined)
    }

    fn poll_reply(&self, context: &mut Context<'_>) -> Poll<Result<R::Reply, StoreError>> {
        let mut state = self.0.lock();
        match &mut *state {
            State::Callers(statement, waker) => match statement.as_mut().poll(context) {
                Poll::Ready(replies) => {
                    *state = State::Replied;
                    Poll::Ready(replies.and_then(|mut it| it.pop().ok_or_else(too_short)))
                }
                Poll::Pending => {
                    waker.clone_from(context.waker());
                    Poll::Pending
                }
            },
            State::TakenOver(reply) => {
                reply.poll_unpin(context).map(|reply| reply.unwrap_or_else(|_| Err(shut_down())))
            }
            State::Replied => Poll::Ready(Err(too_short())),
        }
    }
}

/// The caller of a lone statement. If it gives up, a task completes the statement, because it is in
/// flight until it has its reply.
pub(super) struct LoneCaller<R: Request, E: Execute<R>> {
    requests: Arc<Requests<R>>,
    executor: E,
    lone: Arc<LoneStatement<R>>,
}

impl<R: Request, E: Execute<R>> LoneCaller<R, E> {
    pub(super) fn new(
        requests: &Arc<Requests<R>>,
        executor: &E,
        lone: Arc<LoneStatement<R>>,
    ) -> Self {
        Self { requests: requests.clone(), executor: executor.clone(), lone }
    }

    pub(super) async fn reply(self) -> Result<R::Reply, StoreError> {
        poll_fn(|context| self.lone.poll_reply(context)).await
    }
}

impl<R: Request, E: Execute<R>> Drop for LoneCaller<R, E> {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.lone.0.lock(), State::Replied);
        match state {
            State::Replied => self.requests.ended(&self.executor, &self.lone),
            State::Callers(statement, _) => {
                self.requests.0.lock().forget(&self.lone);
                let combined = Combined { statement, callers: Vec::new() };
                self.requests.complete(&self.executor, combined);
            }
            // That task starts the next one.
            State::TakenOver(_) => {}
        }
    }
}
