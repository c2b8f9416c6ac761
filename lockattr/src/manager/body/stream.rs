//! A body that is a stream: the lock is held from its first poll to its end.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use pin_project_lite::pin_project;

use super::{BodyState, Start};
use crate::Error;
use crate::hold::chain::ChainPosition;

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
        position: ChainPosition,
        state: BodyState,
        cancelled: Option<Error>,
        refuse: Refuse<S::Item>,
    }

    impl<M, S: Stream> PinnedDrop for LockedStream<M, S> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            drop_inside(this.position, this.stream);
        }
    }
}

/// Drops the stream at the position where it was polled, so that its values are dropped inside the
/// hold.
fn drop_inside<S>(position: &ChainPosition, stream: Pin<&mut Option<S>>) {
    if stream.is_some() {
        let last = Last(stream);
        // By way of a future that is dropped unpolled: a thread that is ending may have no
        // task-locals any more, and there `ChainPosition::run` would panic, which ends the process.
        drop(position.clone().run_future(async move { drop(last) }));
    }
}

/// Drops the stream when it is dropped.
struct Last<'a, S>(Pin<&'a mut Option<S>>);

impl<S> Drop for Last<'_, S> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl<M: FnOnce() -> S, S: Stream> LockedStream<M, S> {
    /// Makes the stream at its first poll, at the position in the call chain of that poll.
    pub(crate) fn new(start: Start, make: M, refuse: Refuse<S::Item>) -> Self {
        let (state, position, make) = (start.into(), ChainPosition::here(), Some(make));
        Self { make, stream: None, position, state, cancelled: None, refuse }
    }
}

impl<M: FnOnce() -> S, S: Stream> Stream for LockedStream<M, S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if let Some(make) = this.make.take() {
            let mut make = Some(make);
            let made = this.state.poll_enter(context, |position, _| {
                *this.position = position;
                make.take().map(|make| this.position.run(make))
            });
            // The stream may have to wait for another lease.
            *this.make = make;
            match ready!(made) {
                Ok(stream) => this.stream.set(stream),
                Err(lost) => {
                    *this.make = None;
                    *this.cancelled = Some(lost);
                }
            }
        }
        if let Some(stream) = this.stream.as_mut().as_pin_mut() {
            let next = |context: &mut Context<'_>| this.position.run(|| stream.poll_next(context));
            match ready!(this.state.poll_body(context, next)) {
                Ok(Some(item)) => return Poll::Ready(Some(item)),
                Ok(None) => {}
                Err(lost) => *this.cancelled = Some(lost),
            }
            drop_inside(this.position, this.stream.as_mut());
        }
        let released = ready!(this.state.poll_release(context, false));
        *this.state = BodyState::Unlocked;
        let outcome = this.cancelled.take().map_or(released, Err);
        Poll::Ready(outcome.err().and_then(this.refuse))
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
