//! Statements under way that a task completes.

use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::task::coop::unconstrained;

use super::{Caller, Execute, Replies, Request, Requests, Statement, shut_down, too_short};

/// A statement for several callers.
pub(super) struct Combined<R: Request> {
    pub(super) statement: Statement<R>,
    pub(super) callers: Vec<Caller<R>>,
}

impl<R: Request> Combined<R> {
    /// Hands the statement to the client, by its first poll. A request that is sent later cannot
    /// overtake it.
    pub(super) fn sent(statement: Statement<R>, callers: Vec<Caller<R>>) -> Self {
        // Tokio's budget must not delay the poll.
        let mut statement: Statement<R> = Box::pin(unconstrained(statement));
        let mut context = Context::from_waker(Waker::noop());
        match statement.as_mut().poll(&mut context) {
            Poll::Ready(replies) => Self { statement: Box::pin(ready(replies)), callers },
            Poll::Pending => Self { statement, callers },
        }
    }
}

/// The task that completes statements. If its runtime ends first, no request is sent any more.
pub(super) struct CombinedTask<R: Request, E: Execute<R>> {
    requests: Arc<Requests<R>>,
    executor: E,
    next: Option<Combined<R>>,
}

impl<R: Request, E: Execute<R>> CombinedTask<R, E> {
    pub(super) fn new(requests: &Arc<Requests<R>>, executor: &E, next: Combined<R>) -> Self {
        Self { requests: requests.clone(), executor: executor.clone(), next: Some(next) }
    }

    pub(super) async fn run(mut self) {
        while let Some(Combined { statement, callers }) = &mut self.next {
            let replies = statement.await;
            reply_all::<R>(std::mem::take(callers), replies);
            self.next = self.requests.after(&self.executor);
        }
    }
}

impl<R: Request, E: Execute<R>> Drop for CombinedTask<R, E> {
    fn drop(&mut self) {
        if let Some(Combined { statement, callers }) = self.next.take() {
            // Closes the connection, if it is one that a statement leaves unusable.
            drop(statement);
            self.requests.close();
            // The server may execute it.
            reply_all::<R>(callers, Err(shut_down()));
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
