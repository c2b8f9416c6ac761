//! The requests that wait for one connection, and which of them share the next statement.

use std::array;
use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::in_flight::Combined;
use super::lone::LoneStatement;
use super::{Caller, Execute, Request};
use crate::store::StoreError;

/// Most requests of one statement. A larger one would keep too many locks waiting for its commit.
pub(super) const MAX_BATCH: usize = 64;

/// Renewals come first, because their leases end. Releases come next, because others wait for them.
pub(super) const PRIORITIES: usize = 3;

pub(super) struct Queue<R: Request> {
    pub(super) waiting: [VecDeque<(R, Caller<R>)>; PRIORITIES],
    pub(super) in_flight: usize,
    /// Those of them that their callers complete.
    pub(super) alone: Vec<Arc<LoneStatement<R>>>,
    /// The connection is given up: nothing is sent any more.
    pub(super) is_closed: bool,
}

impl<R: Request> Queue<R> {
    pub(super) fn new() -> Self {
        let waiting = array::from_fn(|_| VecDeque::new());
        Self { waiting, in_flight: 0, alone: Vec::new(), is_closed: false }
    }

    pub(super) fn may_send(&self, limit: usize) -> bool {
        self.in_flight < limit && !self.is_closed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty)
    }

    pub(super) fn push(&mut self, request: R) -> oneshot::Receiver<Result<R::Reply, StoreError>> {
        let (caller, reply) = oneshot::channel();
        if !self.is_closed {
            self.waiting[request.priority()].push_back((request, caller));
        }
        reply
    }

    /// A caller sends its request by itself, with the first poll of the statement.
    pub(super) fn send_alone<E: Execute<R>>(
        &mut self,
        executor: &E,
        request: R,
    ) -> Arc<LoneStatement<R>> {
        let lone = Arc::new(LoneStatement::new(executor.execute(vec![request])));
        self.in_flight += 1;
        self.alone.push(lone.clone());
        lone
    }

    /// A caller does not complete its statement any more.
    pub(super) fn forget(&mut self, lone: &Arc<LoneStatement<R>>) {
        self.alone.retain(|other| !Arc::ptr_eq(other, lone));
    }

    /// Hands the next statement to the client, in a place that is counted already. Frees the place if
    /// nothing waits.
    pub(super) fn next_in_place<E: Execute<R>>(&mut self, executor: &E) -> Option<Combined<R>> {
        let next = self.next(executor);
        if next.is_none() {
            self.in_flight -= 1;
        }
        next
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
                if batch.len() == MAX_BATCH || !(batch.is_empty() || request.joins(&batch)) {
                    break;
                }
                let Some((request, caller)) = waiting.pop_front() else { break };
                batch.push(request);
                callers.push(caller);
            }
            if !batch.is_empty() {
                let share = E::share(batch.len());
                let left = batch.drain(share..).zip(callers.drain(share..));
                left.rev().for_each(|left| waiting.push_front(left));
                break;
            }
        }
        (!batch.is_empty()).then(|| {
            // Of the statement.
            let _timers = executor.runtime().enter();
            Combined::sent(executor.execute(batch), callers)
        })
    }
}
