//! A body that is a stream: the lock is held from its first poll to its end.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use pin_project_lite::pin_project;

use super::BodyState;
use crate::Error;
use crate::hold::chain::drop_inside;

/// The item for a refusal or a loss, if the item type can express one.
pub(crate) type Refuse<T> = fn(Error) -> Option<T>;

pin_project! {
    /// A stream under a lock, which is released after the last item.
    #[must_use]
    pub struct LockedStream<M, S: Stream> {
        // Makes the stream: the first line of the body.
        make: Option<M>,
        // Dropped as soon as it is done or cancelled, before the release.
        #[pin]
        stream: Option<S>,
        state: BodyState,
        refuse: Refuse<S::Item>,
    }

    impl<M, S: Stream> PinnedDrop for LockedStream<M, S> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.stream.is_some() {
                drop_inside(this.state.leave(), &mut || this.stream.set(None));
            }
        }
    }
}

impl<M: FnOnce() -> S, S: Stream> LockedStream<M, S> {
    /// Makes the stream at its first poll, at the position in the call chain of that poll.
    pub(crate) fn new(state: BodyState, make: M, refuse: Refuse<S::Item>) -> Self {
        Self { make: Some(make), stream: None, state, refuse }
    }
}

impl<M: FnOnce() -> S, S: Stream> Stream for LockedStream<M, S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        let mut is_held = true;
        if this.make.is_some() {
            let body = &mut |_: &mut Context<'_>| {
                this.stream.set(this.make.take().map(|make| make()));
                Poll::Ready(())
            };
            // What makes the stream may take longer than the lease lasts.
            is_held = ready!(this.state.poll_body(context, body)) && this.state.is_held();
            *this.make = None;
        }
        if let Some(mut stream) = this.stream.as_mut().as_pin_mut() {
            let mut next = None;
            let body = &mut |context: &mut Context<'_>| {
                stream.as_mut().poll_next(context).map(|item| next = item)
            };
            if is_held && ready!(this.state.poll_body(context, body)) && next.is_some() {
                return Poll::Ready(next);
            }
            drop_inside(this.state.leave(), &mut || this.stream.set(None));
        }
        let released = ready!(this.state.poll_release(context, false));
        Poll::Ready(released.err().and_then(this.refuse))
    }
}

pin_project! {
    /// A stream that acquires its lock when it is first polled.
    #[must_use = "the lock is acquired and the stream begins when it is polled"]
    pub struct Opening<F, S: Stream> {
        #[pin]
        state: State<F, S>,
        refuse: Refuse<S::Item>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, S> {
        Closed { #[pin] opening: F },
        Open { #[pin] stream: S },
        Over,
    }
}

impl<F, S: Stream> Opening<F, S> {
    /// A stream that runs `opening` to acquire the lock.
    pub(crate) fn new(opening: F, refuse: Refuse<S::Item>) -> Self {
        Self { state: State::Closed { opening }, refuse }
    }
}

impl<F, S> Stream for Opening<F, S>
where
    F: Future<Output = Result<S, Error>>,
    S: Stream,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Closed { opening } => match ready!(opening.poll(context)) {
                    Ok(stream) => this.state.set(State::Open { stream }),
                    Err(error) => {
                        this.state.set(State::Over);
                        return Poll::Ready((this.refuse)(error));
                    }
                },
                StateProj::Open { stream } => {
                    let next = ready!(stream.poll_next(context));
                    if next.is_none() {
                        this.state.set(State::Over);
                    }
                    return Poll::Ready(next);
                }
                StateProj::Over => return Poll::Ready(None),
            }
        }
    }
}

impl<M, S: Stream> fmt::Debug for LockedStream<M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedStream").finish_non_exhaustive()
    }
}

impl<F, S: Stream> fmt::Debug for Opening<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}
