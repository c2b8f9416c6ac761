//! The lock around a body, from its acquisition to its release, whatever the type of the body.

use std::fmt;
use std::future::ready as at_once;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::task::coop::consume_budget;

use super::{Granted, Start};
use crate::hold::chain::ChainPosition;
use crate::hold::enter::{Entered, enter, enter_span};
use crate::lock::options::Release;
use crate::{Error, Lease, LockGuard, OnLost};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The state of the lock around a body.
#[derive(Default)]
pub(crate) struct BodyState {
    stage: Stage,
    /// Where the body is in the call chain; `None` before it begins and after it is over.
    position: Option<ChainPosition>,
    /// Wakes a body that has to be cancelled; made when the body first has to wait.
    ended: Option<Boxed<Error>>,
    /// Why the body was cancelled, or did not begin.
    cancelled: Option<Error>,
}

enum Stage {
    /// The lock is being acquired. Again, if its lease ended before the body began.
    // Boxed, because this is most of what an acquisition needs, and a body does not need it any more.
    Acquiring(Boxed<Result<Start, Error>>),
    Started(Start),
    Releasing {
        released: Boxed<Result<(), Error>>,
        lease: Lease,
        on_lost: OnLost,
        /// Whether the caller needs the store's answer, because the key has to be done.
        must_know: bool,
    },
}

impl fmt::Debug for BodyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyState").field("position", &self.position).finish_non_exhaustive()
    }
}

impl Default for Stage {
    fn default() -> Self {
        Self::Started(Start::Unlocked)
    }
}

impl From<Start> for BodyState {
    fn from(start: Start) -> Self {
        Self { stage: Stage::Started(start), ..Self::default() }
    }
}

impl From<Error> for BodyState {
    /// The state of a call that was refused.
    fn from(error: Error) -> Self {
        Self::acquiring(at_once(Err(error)))
    }
}

impl BodyState {
    /// The state while `acquisition` goes on.
    // Inline, or the acquisition would be copied into its box.
    #[inline]
    pub(crate) fn acquiring(
        acquisition: impl Future<Output = Result<Start, Error>> + Send + 'static,
    ) -> Self {
        Self { stage: Stage::Acquiring(Box::pin(acquisition)), ..Self::default() }
    }

    /// Waits until the lock is acquired.
    pub(crate) async fn start(mut self) -> Result<Start, Error> {
        std::future::poll_fn(|context| self.poll_start(context)).await?;
        match self.stage {
            Stage::Started(start) => Ok(start),
            Stage::Acquiring(_) | Stage::Releasing { .. } => Ok(Start::Unlocked),
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.position.is_some()
    }

    /// The position of the body, which is not polled any more.
    pub(super) fn leave(&mut self) -> Option<ChainPosition> {
        self.position.take()
    }

    /// Whether the lock is still held; otherwise the body has to be dropped.
    pub(super) fn is_held(&mut self) -> bool {
        if let Stage::Started(start) = &self.stage
            && let Some((guard, _)) = start.hold()
        {
            self.cancelled = guard.ensure_held().err();
        }
        self.cancelled.is_none()
    }

    /// Polls the body while the lock is held: the first time, as soon as it may begin. `false` if
    /// the body has to be dropped.
    pub(super) fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        body: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<bool> {
        self.cancelled = ready!(self.poll_inside(context, body)).err();
        Poll::Ready(self.cancelled.is_none())
    }

    fn poll_inside(
        &mut self,
        context: &mut Context<'_>,
        body: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<Result<(), Error>> {
        loop {
            ready!(self.poll_start(context))?;
            let Stage::Started(start) = &self.stage else { panic!("polled after completion") };
            let Some((guard, on_lost)) = start.hold() else {
                let position = self.position.get_or_insert_with(ChainPosition::here);
                return position.poll(context, body).map(Ok);
            };
            let has_begun = self.position.is_some();
            if !has_begun && matches!(start, Start::Nested(..)) {
                // It is ready at once; a loop of such calls must let other tasks run.
                ready!(pin!(consume_budget()).poll(context));
            }
            let position = self.position.get_or_insert_with(|| guard.position());
            let entered = match has_begun {
                true => enter_further(guard, on_lost),
                false => enter(guard.frame(), guard.span()),
            };
            match entered.map(|_inside| position.poll(context, body)) {
                Ok(polled) if polled.is_ready() || on_lost != OnLost::Cancel => {
                    return polled.map(Ok);
                }
                // Also waits for the end of the lease.
                Ok(_) => {
                    let ended = self.ended.get_or_insert_with(|| end_of(guard));
                    return ended.as_mut().poll(context).map(Err);
                }
                Err(lost) if has_begun => return Poll::Ready(Err(lost)),
                Err(lost) => {
                    self.position = None;
                    self.acquire_again(lost)?;
                }
            }
        }
    }

    /// Polls the acquisition, if the lock is not acquired yet.
    fn poll_start(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Stage::Acquiring(acquisition) = &mut self.stage {
            let start = ready!(acquisition.as_mut().poll(context));
            // Before the body begins, and also if there is nothing to begin.
            self.stage = Stage::default();
            self.stage = Stage::Started(start?);
        }
        Poll::Ready(Ok(()))
    }

    /// Acquires a lock whose lease ended before the body began, unless that is final.
    // Rare, and large: inline, each nested call would reserve the stack for it.
    #[cold]
    #[inline(never)]
    fn acquire_again(&mut self, lost: Error) -> Result<(), Error> {
        let Stage::Started(start @ Start::Granted(_)) = &mut self.stage else { return Err(lost) };
        match std::mem::replace(start, Start::Unlocked) {
            Start::Granted(granted) => match granted.options_for_retry() {
                Some(options) => {
                    let again =
                        async move { granted.reacquire(options, lost).await.map(Start::from) };
                    self.stage = Stage::Acquiring(Box::pin(again));
                    Ok(())
                }
                None => {
                    *start = Start::Granted(granted);
                    Err(lost)
                }
            },
            Start::Unlocked | Start::Nested(..) => Err(lost),
        }
    }

    /// Releases the lock; the error of a body that was cancelled comes first.
    pub(super) fn poll_release(
        &mut self,
        context: &mut Context<'_>,
        is_done: bool,
    ) -> Poll<Result<(), Error>> {
        let released = ready!(self.poll_released(context, is_done && self.cancelled.is_none()));
        self.stage = Stage::default();
        Poll::Ready(self.cancelled.take().map_or(released, Err))
    }

    fn poll_released(
        &mut self,
        context: &mut Context<'_>,
        is_done: bool,
    ) -> Poll<Result<(), Error>> {
        if let Stage::Started(start) = &mut self.stage {
            (self.position, self.ended) = (None, None);
            let granted = match std::mem::replace(start, Start::Unlocked) {
                Start::Unlocked => return Poll::Ready(Ok(())),
                // A nested call releases nothing in a store.
                Start::Nested(guard, on_lost) => {
                    return Poll::Ready(outcome_for_caller(
                        guard.ensure_held(),
                        guard.key(),
                        on_lost,
                    ));
                }
                Start::Granted(granted) => granted,
            };
            let Granted { guard, options, .. } = *granted;
            if guard.is_nested() {
                let held = guard.ensure_held();
                return Poll::Ready(outcome_for_caller(held, guard.key(), options.on_lost));
            }
            let (lease, on_lost) = (Lease::clone(&guard), options.on_lost);
            let once_per = options.once_per.filter(|_| is_done);
            let released: Boxed<_> = match (options.release, once_per) {
                (_, Some(period)) => Box::pin(guard.release_done(period)),
                (Release::Await, None) => Box::pin(guard.release()),
                (Release::Background, None) => Box::pin(guard.release_until_sent()),
            };
            let must_know = once_per.is_some();
            self.stage = Stage::Releasing { released, lease, on_lost, must_know };
        }
        match &mut self.stage {
            Stage::Releasing { released, lease, on_lost, must_know } => {
                let released = ready!(released.as_mut().poll(context));
                if *must_know {
                    return Poll::Ready(released);
                }
                Poll::Ready(outcome_for_caller(released, lease.key(), *on_lost))
            }
            Stage::Acquiring(_) | Stage::Started(_) => Poll::Ready(Ok(())),
        }
    }
}

/// Enters a body that has begun. The clock decides before every poll: a process that slept past its
/// deadline gets here before any timer fires.
fn enter_further(guard: &LockGuard, on_lost: OnLost) -> Result<Entered<'_>, Error> {
    let inside = enter_span(guard.span());
    if on_lost == OnLost::Cancel {
        guard.ensure_held()?;
    }
    Ok(inside)
}

/// Waits for the end of the lease.
#[inline(never)]
fn end_of(guard: &LockGuard) -> Boxed<Error> {
    Box::pin(guard.frame().clone().ended())
}

/// The part of a release's outcome that the caller needs to know.
pub(super) fn outcome_for_caller(
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
