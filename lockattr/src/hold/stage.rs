//! The stage of a body: it waits for its position in the call chain, runs in it, or is over.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::chain::{ChainPosition, Chained};

pin_project! {
    #[project = StageProj]
    pub(crate) enum Stage<B> {
        Waits { body: Option<B> },
        Runs { #[pin] body: Chained<B> },
        Over,
    }
}

impl<B: Future> Stage<B> {
    /// Puts the body in its position, if it waits.
    #[inline]
    pub(crate) fn begin(mut self: Pin<&mut Self>, position: ChainPosition) {
        if let StageProj::Waits { body } = self.as_mut().project()
            && let Some(body) = body.take()
        {
            self.set(Self::Runs { body: position.run_future(body) });
        }
    }

    #[inline]
    pub(crate) fn poll_begun(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<B::Output> {
        match self.project() {
            StageProj::Runs { body } => body.poll(context),
            _ => panic!("polled after completion"),
        }
    }
}
