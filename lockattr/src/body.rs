//! Runs a body under a hold: dropped when the lease is lost, followed by the release.
//!
//! A future written by hand, because every `async fn` around a body would hold it twice: once as
//! its argument and once while it awaits it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

use crate::chain::{self, Inside};
use crate::options::{Release, Terms};
use crate::{Error, LockGuard, OnLost};

type Releasing = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

pin_project! {
    /// Runs `body`, gives the lock back, and says what the terms make of a loss.
    ///
    /// The body's own result is hidden only by `Error::Lost`: a release that merely got no answer
    /// is an event.
    #[must_use]
    pub(crate) struct Run<B: Future> {
        // Dropped as soon as it is done or cancelled, before the release.
        #[pin]
        body: Option<Inside<B>>,
        held: Option<Held>,
        // Only while the lease's loss shall cancel the body.
        #[pin]
        ended: Option<OwnedNotified>,
        output: Option<Result<B::Output, Error>>,
    }
}

/// What is given back when the body is done.
enum Held {
    Running(LockGuard, Terms),
    Releasing(Releasing, String, OnLost),
}

/// Runs `body` under `guard`.
pub(crate) fn run<B: Future>(guard: LockGuard, terms: Terms, body: B) -> Run<B> {
    let frame = guard.frame();
    Run {
        body: Some(chain::inside(frame.clone(), body)),
        ended: (terms.on_lost == OnLost::Cancel).then(|| frame.hold.when_ended()),
        held: Some(Held::Running(guard, terms)),
        output: None,
    }
}

/// Runs `body` without a lock of its own, in the call chain as it is.
pub(crate) fn run_unlocked<B: Future>(body: B) -> Run<B> {
    Run { body: Some(chain::as_it_is(body)), ended: None, held: None, output: None }
}

impl<B: Future> Future for Run<B> {
    type Output = Result<B::Output, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(body) = this.body.as_mut().as_pin_mut() {
            if let Some(ended) = this.ended.as_mut().as_pin_mut() {
                // For the waker's sake; what it says is not enough, because a process that slept
                // past the deadline gets here before any timer has fired.
                let _woken_when_ended = ended.poll(context);
            }
            let output = match lost(this.held) {
                Some(error) if this.ended.is_some() => Err(error),
                _ => Ok(ready!(body.poll(context))),
            };
            this.body.set(None);
            this.ended.set(None);
            *this.output = Some(output);
        }
        let released = ready!(release(this.held, context));
        let output = this.output.take().expect("polled again after it was ready");
        Poll::Ready(output.and_then(|output| released.map(|()| output)))
    }
}

/// How the lease was lost, by the clock: asked before every poll of the body.
fn lost(held: &Option<Held>) -> Option<Error> {
    match held {
        Some(Held::Running(guard, _)) => guard.frame().hold.ensure_held(Instant::now()).err(),
        _ => None,
    }
}

/// Gives the lock back; an `Err` is a loss that the caller has to hear of.
fn release(held: &mut Option<Held>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
    if let Some(Held::Running(..)) = held
        && let Some(Held::Running(guard, terms)) = held.take()
    {
        let key = guard.key().to_owned();
        // A nested call asks no store, so it has no future to box either.
        if guard.is_nested() {
            return Poll::Ready(judge(guard.ensure_held(), &key, terms.on_lost));
        }
        let releasing: Releasing = match terms.release {
            Release::Await => Box::pin(guard.release()),
            Release::Background => Box::pin(guard.release_in_background()),
        };
        *held = Some(Held::Releasing(releasing, key, terms.on_lost));
    }
    match held {
        Some(Held::Releasing(releasing, key, on_lost)) => {
            let released = ready!(releasing.as_mut().poll(context));
            Poll::Ready(judge(released, key, *on_lost))
        }
        _ => Poll::Ready(Ok(())),
    }
}

fn judge(released: Result<(), Error>, key: &str, on_lost: OnLost) -> Result<(), Error> {
    match released {
        Err(error @ Error::Store { .. }) => {
            tracing::warn!(key, %error, "the release got no answer; trying again");
            Ok(())
        }
        Err(error) if on_lost == OnLost::Ignore => {
            tracing::warn!(key, %error, "the lease was lost while the body ran; ignored");
            Ok(())
        }
        released => released,
    }
}
