//! Runs a body under a hold: drops it when the lease is lost, and releases the lock afterwards.
//!
//! A future written by hand, because an `async fn` around a body would store it twice: once as its
//! argument and once while it awaits it.

mod blocking;
mod granted;
mod stream;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::hold::chain::ChainPosition;
use crate::hold::enter::{enter, enter_span};
use crate::hold::stage::Stage;
use crate::lock::options::{Release, ResolvedOptions};
use crate::{Error, Lease, LockGuard, OnLost};
pub(crate) use blocking::{run_blocking, run_once_blocking};
pub use granted::lease;
pub(crate) use granted::{Granted, Start, nested_for_caller};
pub(crate) use stream::{LockedStream, Opening};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// Runs `body`, releases the lock, and applies `on_lost`.
    ///
    /// Only `Error::Lost` hides the body's own result: a release without an answer is an event.
    #[must_use]
    pub(crate) struct Run<B: Future> {
        // Dropped as soon as it is done or cancelled, before the release.
        #[pin]
        body: Stage<B>,
        held: BodyState,
        output: Option<Result<B::Output, Error>>,
        // Whether an output makes the key done, for a body that runs once in a period.
        is_ok: Option<fn(&B::Output) -> bool>,
    }
}

/// The state of the lock around a body.
enum BodyState {
    /// The body runs without a lock of its own.
    Unlocked,
    /// The lock is granted; the body has not begun.
    Granted(Box<Granted>),
    /// The lease ended before the body began: the lock is being acquired again.
    Reacquiring(Boxed<Result<Granted, Error>>),
    Running {
        guard: LockGuard,
        on_lost: OnLost,
        release: Release,
        /// How long the key is done after a body that ended `Ok`.
        once_per: Option<Duration>,
        /// Whether the body was polled. A nested call is in this state before its first poll.
        begun: bool,
        /// Wakes a body that has to be cancelled; made when the body first has to wait.
        ended: Option<Boxed<Error>>,
    },
    Releasing {
        released: Boxed<Result<(), Error>>,
        lease: Lease,
        on_lost: OnLost,
        /// Whether the caller needs the store's answer, because the key has to be done.
        must_know: bool,
    },
}

/// Runs `body` under the lock of `start`; without one, at the current position of the call chain.
// Inline, or the body would be copied once more.
#[inline]
pub(crate) fn run<B: Future>(start: Start, body: B) -> Run<B> {
    let body = match start {
        Start::Unlocked => Stage::Runs { body: ChainPosition::here().run_future(body) },
        Start::Nested(..) | Start::Granted(_) => Stage::Waits { body: Some(body) },
    };
    Run { body, held: start.into(), output: None, is_ok: None }
}

/// Runs a body whose key is done for a period, if `is_ok` accepts its output.
pub(crate) fn run_once<B: Future>(start: Start, body: B, is_ok: fn(&B::Output) -> bool) -> Run<B> {
    Run { is_ok: Some(is_ok), ..run(start, body) }
}

impl<B: Future> Future for Run<B> {
    type Output = Result<B::Output, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.output.is_none() {
            let output = ready!(this.held.poll_run(context, this.body.as_mut()));
            this.body.set(Stage::Over);
            *this.output = Some(output);
        }
        let is_ok = |output: &B::Output| this.is_ok.is_some_and(|is_ok| is_ok(output));
        let is_done = this.output.as_ref().is_some_and(|it| it.as_ref().is_ok_and(is_ok));
        let released = ready!(this.held.poll_release(context, is_done));
        let output = this.output.take().expect("polled after completion");
        Poll::Ready(output.and_then(|output| released.map(|()| output)))
    }
}

impl From<Start> for BodyState {
    fn from(start: Start) -> Self {
        match start {
            Start::Unlocked => Self::Unlocked,
            Start::Granted(granted) => Self::Granted(granted),
            Start::Nested(guard, on_lost) => Self::Running {
                guard,
                on_lost,
                // A nested call releases nothing in a store.
                release: Release::Await,
                once_per: None,
                begun: false,
                ended: None,
            },
        }
    }
}

impl BodyState {
    fn running(granted: Granted) -> Self {
        let ResolvedOptions { on_lost, release, once_per, .. } = granted.options;
        Self::Running {
            guard: granted.guard,
            on_lost,
            release,
            once_per,
            begun: false,
            ended: None,
        }
    }

    /// Polls the body; the first time, as soon as it may begin.
    fn poll_run<B: Future>(
        &mut self,
        context: &mut Context<'_>,
        mut body: Pin<&mut Stage<B>>,
    ) -> Poll<Result<B::Output, Error>> {
        if self.has_begun() {
            return self.poll_body(context, |context| body.poll_begun(context));
        }
        let polled = ready!(self.poll_enter(context, |position, context| {
            body.as_mut().begin(position);
            body.poll_begun(context)
        }))?;
        self.poll_begun(context, polled)
    }

    fn has_begun(&self) -> bool {
        !matches!(
            self,
            Self::Granted(_) | Self::Reacquiring(_) | Self::Running { begun: false, .. }
        )
    }

    /// Begins the body with `begin` while the lock is held. If the lease ended before, acquires the
    /// lock again.
    fn poll_enter<T>(
        &mut self,
        context: &mut Context<'_>,
        begin: impl FnOnce(ChainPosition, &mut Context<'_>) -> T,
    ) -> Poll<Result<T, Error>> {
        let begun = loop {
            let lost = match self {
                // The guard stays here while the body begins: a body that panics is dropped before
                // its guard.
                Self::Granted(granted) => {
                    let position = granted.guard.position();
                    match enter(granted.guard.frame(), granted.guard.span()) {
                        Ok(_entered) => break begin(position, context),
                        Err(lost) => lost,
                    }
                }
                Self::Running { guard, begun: false, .. } => {
                    let position = guard.position();
                    let entered = enter(guard.frame(), guard.span());
                    return Poll::Ready(entered.map(|_entered| begin(position, context)));
                }
                Self::Reacquiring(acquisition) => {
                    let granted = ready!(acquisition.as_mut().poll(context));
                    *self = Self::Unlocked;
                    *self = Self::Granted(Box::new(granted?));
                    continue;
                }
                // The body has begun, or has no lock of its own.
                _ => return Poll::Ready(Ok(begin(ChainPosition::here(), context))),
            };
            let Self::Granted(granted) = std::mem::replace(self, Self::Unlocked) else { continue };
            let Some(options) = granted.options_for_retry() else {
                *self = Self::running(*granted);
                return Poll::Ready(Err(lost));
            };
            *self = Self::Reacquiring(Box::pin(granted.reacquire(options, lost)));
        };
        if let Self::Granted(granted) = std::mem::replace(self, Self::Unlocked) {
            *self = Self::running(*granted);
        }
        Poll::Ready(Ok(begun))
    }

    /// Polls the body, unless the lease is lost and `on_lost` cancels it.
    fn poll_body<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Error>> {
        let Self::Running { guard, on_lost, begun, .. } = self else {
            return poll(context).map(Ok);
        };
        let polled = {
            let _inside = if *begun {
                let inside = enter_span(guard.span());
                // The clock decides before every poll: a process that slept past its deadline gets
                // here before any timer fires.
                if *on_lost == OnLost::Cancel
                    && let Err(error) = guard.ensure_held()
                {
                    return Poll::Ready(Err(error));
                }
                inside
            } else {
                match enter(guard.frame(), guard.span()) {
                    Ok(inside) => inside,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            };
            poll(context)
        };
        self.poll_begun(context, polled)
    }

    /// Handles a poll of a body that has begun: if a loss cancels the body, also waits for the end
    /// of its lease.
    fn poll_begun<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<T>,
    ) -> Poll<Result<T, Error>> {
        let Self::Running { guard, on_lost, begun, ended, .. } = self else {
            return polled.map(Ok);
        };
        *begun = true;
        if polled.is_ready() || *on_lost != OnLost::Cancel {
            return polled.map(Ok);
        }
        let ended = ended.get_or_insert_with(|| Box::pin(guard.frame().clone().ended()));
        ended.as_mut().poll(context).map(Err)
    }

    fn poll_release(
        &mut self,
        context: &mut Context<'_>,
        is_done: bool,
    ) -> Poll<Result<(), Error>> {
        if let Self::Running { .. } = self
            && let Self::Running { guard, on_lost, release, once_per, .. } =
                std::mem::replace(self, Self::Unlocked)
        {
            if guard.is_nested() {
                return Poll::Ready(outcome_for_caller(guard.ensure_held(), guard.key(), on_lost));
            }
            let lease = Lease::clone(&guard);
            let once_per = once_per.filter(|_| is_done);
            let released: Boxed<_> = match (release, once_per) {
                (_, Some(period)) => Box::pin(guard.release_done(period)),
                (Release::Await, None) => Box::pin(guard.release()),
                (Release::Background, None) => Box::pin(guard.release_until_sent()),
            };
            *self = Self::Releasing { released, lease, on_lost, must_know: once_per.is_some() };
        }
        match self {
            Self::Releasing { released, lease, on_lost, must_know } => {
                let released = ready!(released.as_mut().poll(context));
                if *must_know {
                    return Poll::Ready(released);
                }
                Poll::Ready(outcome_for_caller(released, lease.key(), *on_lost))
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// The part of a release's outcome that the caller needs to know.
fn outcome_for_caller(
    released: Result<(), Error>,
    key: &str,
    on_lost: OnLost,
) -> Result<(), Error> {
    match released {
        Err(error @ Error::Store { .. }) => {
            tracing::warn!(
                lockattr.key = key, error.message = %error,
                "the release got no answer; trying again"
            );
            Ok(())
        }
        Err(error) if on_lost == OnLost::Ignore => {
            // The loss itself is a warning.
            tracing::debug!(
                lockattr.key = key, error.message = %error,
                "the lease was lost while the body ran; ignored"
            );
            Ok(())
        }
        released => released,
    }
}
