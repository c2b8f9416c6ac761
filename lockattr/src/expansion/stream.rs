//! What the expansion of a function that returns a stream calls.

use std::marker::PhantomData;

pub use futures_util::Stream;
pub use futures_util::future::Either;

use super::{Entry, is_busy};
use crate::Error;
use crate::manager::body::{LockedStream, Opening};

/// A stream that `opening` under its lock when it is first polled.
pub fn stream<F, S>(opening: F, refuse: fn(Error) -> Option<S::Item>) -> Opening<F, S>
where
    F: Future<Output = Result<S, Error>>,
    S: Stream,
{
    Opening::new(opening, refuse)
}

impl Entry {
    /// The stream that `make` makes, followed by the release.
    pub fn stream<M: FnOnce() -> S, S: Stream>(
        self,
        make: M,
        refuse: fn(Error) -> Option<S::Item>,
    ) -> LockedStream<M, S> {
        LockedStream::new(self.0, make, refuse)
    }
}

/// A refusal or a loss as an item.
pub fn reject_item<T: RejectedItem>(error: Error) -> Option<T> {
    Some(T::rejected_item(error))
}

/// Items that can express a refusal.
#[diagnostic::on_unimplemented(
    message = "items of type `{Self}` have no room for a lock error",
    label = "make the items `Result<_, E>` with `E: From<lockattr::Error>`",
    note = "an annotated stream has to say that it was refused, or lost its lock: let its items be \
            `Result<_, E>`, and write `impl From<lockattr::Error> for E` where `E` is a type of your own",
    note = "or write `on_busy = skip`, for an empty stream where the lock is busy"
)]
pub trait RejectedItem {
    /// The refusal as an item.
    fn rejected_item(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<Error>> RejectedItem for Result<T, E> {
    fn rejected_item(error: Error) -> Self {
        Err(error.into())
    }
}

/// Selects what the items of a stream can express: `(&ItemsOf::<T>::new()).skip()`, for which the
/// compiler takes the first of the two traits that fits.
#[derive(Debug)]
pub struct ItemsOf<T>(PhantomData<fn() -> T>);

impl<T> ItemsOf<T> {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

/// `on_busy = skip` if the items can express other refusals.
pub trait SkippedWithRoom<T> {
    /// Nothing if the lock is busy, otherwise the refusal.
    fn skip(&self) -> fn(Error) -> Option<T>;
}

impl<T: RejectedItem> SkippedWithRoom<T> for ItemsOf<T> {
    fn skip(&self) -> fn(Error) -> Option<T> {
        |error| if is_busy(&error) { None } else { reject_item(error) }
    }
}

/// `on_busy = skip` if they cannot.
pub trait SkippedWithout<T> {
    /// Nothing, and an error event unless the lock was merely busy.
    fn skip(&self) -> fn(Error) -> Option<T>;
}

impl<T> SkippedWithout<T> for &ItemsOf<T> {
    fn skip(&self) -> fn(Error) -> Option<T> {
        |error| {
            if !is_busy(&error) {
                tracing::error!(
                    error.message = %error,
                    "the stream ended, because the lock was refused or lost"
                );
            }
            None
        }
    }
}
