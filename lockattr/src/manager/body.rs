//! Runs a body under a hold: drops it when the lease is lost, and releases the lock afterwards.
//!
//! The compiler repeats [`Run`] for each body. So it is thin: what depends only on the body's output
//! is in [`Around`], and all else in [`BodyState`]. It is written by hand, because an `async fn`
//! around a body would store it twice: once as its argument and once while it awaits it.

mod blocking;
mod granted;
mod state;
mod stream;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::Error;
use crate::hold::chain::{ChainPosition, drop_inside};
pub(crate) use blocking::run_blocking;
pub use granted::lease;
pub(crate) use granted::{Granted, Start, nested_for_caller};
pub(crate) use state::BodyState;
pub(crate) use stream::{LockedStream, Opening};

pin_project! {
    /// Runs a body, releases the lock, and applies `on_lost`.
    ///
    /// Only `Error::Lost` hides the body's own result: a release without an answer is an event.
    // The compiler proves `Send` only for types that are nested up to a limit, and a call inside a call
    // adds the layers of both. So the body is a field of its own, and not in an `Option`. And what is
    // around it comes first: for the innermost call, the compiler then remembers its proof.
    #[project = RunProj]
    #[must_use]
    pub enum Run<B: Future> {
        // The body was dropped, because it was cancelled.
        Releases { around: Around<B::Output> },
        Runs {
            #[pin]
            body: B,
            around: Around<B::Output>,
        },
    }

    impl<B: Future> PinnedDrop for Run<B> {
        fn drop(this: Pin<&mut Self>) {
            if let Run::Runs { around, .. } = &*this && around.state.has_begun() {
                this.drop_body();
            }
        }
    }
}

/// Runs `body` once its lock is acquired; without a lock, at the current position of the call chain.
/// `refuse` makes an output of the error of a body that did not run, or lost its lock.
pub(crate) fn run<B: Future>(state: BodyState, body: B, refuse: fn(Error) -> B::Output) -> Run<B> {
    Run::Runs { body, around: Around { state, output: None, refuse, is_ok: None } }
}

/// Runs a body whose key is done for a period, if `is_ok` accepts its output.
pub(crate) fn run_once<B: Future>(
    state: BodyState,
    body: B,
    refuse: fn(Error) -> B::Output,
    is_ok: fn(&B::Output) -> bool,
) -> Run<B> {
    Run::Runs { body, around: Around { state, output: None, refuse, is_ok: Some(is_ok) } }
}

impl<B: Future> Run<B> {
    /// Drops the body where it ran.
    fn drop_body(mut self: Pin<&mut Self>) {
        let RunProj::Runs { around, .. } = self.as_mut().project() else { return };
        let (position, around) = around.leave();
        let mut around = Some(around);
        drop_inside(position, &mut || {
            if let Some(around) = around.take() {
                self.set(Self::Releases { around });
            }
        });
    }
}

impl<B: Future> Future for Run<B> {
    type Output = B::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<B::Output> {
        loop {
            match self.as_mut().project() {
                RunProj::Runs { mut body, around } => {
                    let body = &mut |context: &mut Context<'_>| body.as_mut().poll(context);
                    if let Some(output) = ready!(around.poll(context, body)) {
                        return Poll::Ready(output);
                    }
                }
                RunProj::Releases { around } => return around.poll_release(context),
            }
            self.as_mut().drop_body();
        }
    }
}

/// What is around a body with this output.
#[derive(Debug)]
pub struct Around<O> {
    state: BodyState,
    output: Option<O>,
    refuse: fn(Error) -> O,
    /// Whether an output makes the key done, for a body that runs once in a period.
    is_ok: Option<fn(&O) -> bool>,
}

impl<O> Around<O> {
    /// Polls `body`, and then the release. `None` if the body has to be dropped before that.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        body: &mut dyn FnMut(&mut Context<'_>) -> Poll<O>,
    ) -> Poll<Option<O>> {
        if self.output.is_none() {
            let Self { state, output, .. } = self;
            let body = &mut |context: &mut Context<'_>| body(context).map(|it| *output = Some(it));
            if !ready!(state.poll_body(context, body)) {
                return Poll::Ready(None);
            }
        }
        self.poll_release(context).map(Some)
    }

    fn poll_release(&mut self, context: &mut Context<'_>) -> Poll<O> {
        let is_done = match (&self.output, self.is_ok) {
            (Some(output), Some(is_ok)) => is_ok(output),
            _ => false,
        };
        let released = ready!(self.state.poll_release(context, is_done));
        match (released, self.output.take()) {
            (Ok(()), Some(output)) => Poll::Ready(output),
            (Err(error), _) => Poll::Ready((self.refuse)(error)),
            (Ok(()), None) => panic!("polled after completion"),
        }
    }

    /// Leaves the body, which is not polled any more.
    fn leave(&mut self) -> (Option<ChainPosition>, Self) {
        let Self { refuse, is_ok, .. } = *self;
        let nothing = Self { state: BodyState::default(), output: None, refuse, is_ok };
        (self.state.leave(), std::mem::replace(self, nothing))
    }
}
