//! Statements under way, and what happens when they end or their callers give up.

use std::sync::Arc;

use super::{Caller, Execute, Replies, Request, Requests, Statement, not_sent, too_short};

/// The statement of a caller that sends it by itself. If the caller gives up, a task completes it,
/// because it is in flight until it has its reply.
pub(super) struct LoneStatement<R: Request, E: Execute<R>> {
    requests: Arc<Requests<R>>,
    executor: E,
    statement: Option<Statement<R>>,
}

impl<R: Request, E: Execute<R>> LoneStatement<R, E> {
    pub(super) fn new(requests: &Arc<Requests<R>>, executor: &E, statement: Statement<R>) -> Self {
        Self { requests: requests.clone(), executor: executor.clone(), statement: Some(statement) }
    }

    pub(super) async fn replies(&mut self) -> Replies<R> {
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
pub(super) struct Combined<R: Request> {
    pub(super) statement: Statement<R>,
    pub(super) callers: Vec<Caller<R>>,
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
