//! Runs a body under a hold: dropped when the lease is lost, followed by the release.
//!
//! A future written by hand, because every `async fn` around a body would hold it twice: once as
//! its argument and once while it awaits it.

mod blocking;
mod stream;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tracing::Span;

use crate::chain::{self, Chained};
use crate::options::{Release, Terms};
use crate::{Error, LockGuard, OnLost};
pub(crate) use blocking::{run_blocking, run_unlocked_blocking};
pub(crate) use stream::{LockedStream, Opening};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// Runs `body`, gives the lock back, and says what the terms make of a loss.
    ///
    /// The body's own result is hidden only by `Error::Lost`: a release that merely got no answer
    /// is an event.
    #[must_use]
    pub(crate) struct Run<B: Future> {
        // Dropped as soon as it is done or cancelled, before the release.
        #[pin]
        body: Option<Chained<B>>,
        held: Held,
        output: Option<Result<B::Output, Error>>,
    }
}

/// How far it is with the lock.
enum Held {
    /// There is none.
    Unlocked,
    Running {
        guard: LockGuard,
        on_lost: OnLost,
        release: Release,
        /// Wakes the body to be cancelled; made when it first has to wait.
        ended: Option<Boxed<Error>>,
    },
    Releasing {
        released: Boxed<Result<(), Error>>,
        key: String,
        on_lost: OnLost,
    },
}

/// Runs `body` under `guard`.
pub(crate) fn run<B: Future>(guard: LockGuard, terms: &Terms, body: B) -> Run<B> {
    let body = Some(guard.inside(body));
    Run { body, held: Held::running(guard, terms), output: None }
}

/// Runs `body` without a lock of its own, in the call chain as it is.
pub(crate) fn run_unlocked<B: Future>(body: B) -> Run<B> {
    Run { body: Some(chain::as_it_is(body)), held: Held::Unlocked, output: None }
}

impl<B: Future> Future for Run<B> {
    type Output = Result<B::Output, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(body) = this.body.as_mut().as_pin_mut() {
            let output = ready!(this.held.poll_body(context, |context| body.poll(context)));
            this.body.set(None);
            *this.output = Some(output);
        }
        let released = ready!(this.held.poll_release(context));
        let output = this.output.take().expect("polled again after it was ready");
        Poll::Ready(output.and_then(|output| released.map(|()| output)))
    }
}

impl Held {
    fn running(guard: LockGuard, terms: &Terms) -> Self {
        let Terms { on_lost, release, .. } = *terms;
        Self::Running { guard, on_lost, release, ended: None }
    }

    /// Polls the body, unless the lease is lost and the terms say that this cancels it.
    fn poll_body<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Error>> {
        let Self::Running { guard, on_lost, ended, .. } = self else {
            return poll(context).map(Ok);
        };
        let _inside = guard.span().map(Span::enter);
        if *on_lost != OnLost::Cancel {
            return poll(context).map(Ok);
        }
        // The clock decides, before every poll: a process that slept past its deadline gets here
        // before any timer has fired.
        if let Err(error) = guard.ensure_held() {
            return Poll::Ready(Err(error));
        }
        if let Poll::Ready(output) = poll(context) {
            return Poll::Ready(Ok(output));
        }
        let ended = ended.get_or_insert_with(|| Box::pin(guard.frame().clone().ended()));
        ended.as_mut().poll(context).map(Err)
    }

    /// Gives the lock back.
    fn poll_release(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Self::Running { .. } = self
            && let Self::Running { guard, on_lost, release, .. } =
                std::mem::replace(self, Self::Unlocked)
        {
            // A nested call asks no store, so it needs no future.
            if guard.is_nested() {
                return Poll::Ready(judge(guard.ensure_held(), guard.key(), on_lost));
            }
            let key = guard.key().to_owned();
            let released: Boxed<_> = match release {
                Release::Await => Box::pin(guard.release()),
                Release::Background => Box::pin(guard.release_in_background()),
            };
            *self = Self::Releasing { released, key, on_lost };
        }
        match self {
            Self::Releasing { released, key, on_lost } => {
                let released = ready!(released.as_mut().poll(context));
                Poll::Ready(judge(released, key, *on_lost))
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// What of a release the caller has to hear of.
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
