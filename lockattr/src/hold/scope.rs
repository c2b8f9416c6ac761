//! Code that runs as part of a hold while its caller keeps the guard.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::chain::{ChainPosition, Chained};
use super::enter::enter;

pin_project! {
    /// A future inside a hold, run by [`LockGuard::scope`](crate::LockGuard::scope).
    #[project = ScopedProj]
    #[must_use]
    pub(crate) enum Scoped<F> {
        Waits { begins: Option<(ChainPosition, F)> },
        Runs { #[pin] future: Chained<F> },
    }
}

impl<F: Future> Scoped<F> {
    pub(crate) fn new(position: ChainPosition, future: F) -> Self {
        Self::Waits { begins: Some((position, future)) }
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if let ScopedProj::Waits { begins } = self.as_mut().project()
            && let Some((position, future)) = begins.take()
        {
            self.set(Self::Runs { future: entered(position).run_future(future) });
        }
        match self.project() {
            ScopedProj::Runs { future } => future.poll(context),
            ScopedProj::Waits { .. } => panic!("polled after a panic"),
        }
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
