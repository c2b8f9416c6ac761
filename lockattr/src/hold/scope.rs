//! Code that runs as part of a hold while its caller keeps the guard.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::enter::enter;
use super::stage::Stage;
use crate::hold::chain::ChainPosition;

pin_project! {
    /// A future inside a hold, run by [`LockGuard::scope`](crate::LockGuard::scope).
    #[must_use]
    pub(crate) struct Scoped<F> {
        #[pin]
        future: Stage<F>,
        position: Option<ChainPosition>,
    }
}

impl<F: Future> Scoped<F> {
    pub(crate) fn new(position: ChainPosition, future: F) -> Self {
        Self { future: Stage::Waits { body: Some(future) }, position: Some(position) }
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        if let Some(position) = this.position.take() {
            this.future.as_mut().begin(entered(position));
        }
        this.future.poll_begun(context)
    }
}

/// Runs `work` inside a hold, for [`LockGuard::scope_blocking`](crate::LockGuard::scope_blocking).
pub(crate) fn run_scoped<T>(position: ChainPosition, work: impl FnOnce() -> T) -> T {
    entered(position).run(work)
}

/// The position for the code of a scope. A scope returns what its code returns, so it cannot fail:
/// code that begins after its lease has ended finds no current lease, and its nested calls are
/// lost.
fn entered(position: ChainPosition) -> ChainPosition {
    match position.entry().map(|entry| enter(entry, None)) {
        Some(Err(error)) => {
            tracing::warn!(
                error.message = %error,
                "a scope begins on a lease that has ended: it runs without the lock"
            );
            position.without_lease()
        }
        _ => position,
    }
}
