//! What the expansion calls with the feature `share`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::{Call, printed};
use crate::Error;
use crate::manager::body::Start;
use crate::manager::share::{Flight, Function, Shared, function_of};

/// The right to run the body, or the result of another caller.
#[derive(Debug)]
pub struct Sharing<R>(Shares<R>);

#[derive(Debug)]
enum Shares<R> {
    /// The result of a body that ran while this caller waited.
    Taken(R),
    /// This caller runs the body without a lock, and shares nothing.
    Unlocked,
    /// This caller runs the body.
    Runs(Start, Box<Flight>),
}

/// Acquires the lock that `call` requests, or takes the result for which it waited. The type of `closure` tells the
/// function from others.
pub async fn enter_sharing<R: Shareable>(
    call: Call,
    closure: impl Fn(),
) -> Result<Sharing<R>, Error> {
    // Boxed, or the caller's future would contain all of the acquisition.
    Box::pin(acquire(call, function_of(&closure))).await
}

async fn acquire<R: Shareable>(call: Call, of: Function) -> Result<Sharing<R>, Error> {
    let Call { key, options, manager, locks, .. } = call;
    if !locks {
        return Ok(Sharing(Shares::Unlocked));
    }
    let manager = manager.chosen()?;
    let options = options.resolve(manager.settings())?;
    Ok(Sharing(match manager.start_sharing::<R::Ok>(options, &printed(key)?, of).await? {
        Shared::Taken(value) => Shares::Taken(R::of(value)),
        Shared::Runs(start, flight) => Shares::Runs(start, flight),
    }))
}

impl<R: Shareable> Sharing<R> {
    /// Runs the body and releases the lock, unless another caller did.
    pub async fn run(self, body: impl Future<Output = R>, refuse: fn(Error) -> R) -> R {
        match self.0 {
            Shares::Taken(result) => result,
            Shares::Unlocked => body.await,
            Shares::Runs(start, flight) => flight.run(start, body, R::ok, refuse).await,
        }
    }
}

/// Return types whose value can be shared.
#[diagnostic::on_unimplemented(
    message = "`share_result` cannot share a `{Self}`",
    label = "return a `Result<T, E>` with `T: Serialize + DeserializeOwned`"
)]
pub trait Shareable: Sized {
    /// What is shared.
    type Ok: Serialize + DeserializeOwned;

    /// The value to share; an error is none.
    fn ok(&self) -> Option<&Self::Ok>;

    /// The result of a caller that got the value of another.
    fn of(value: Self::Ok) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned, E> Shareable for Result<T, E> {
    type Ok = T;

    fn ok(&self) -> Option<&T> {
        self.as_ref().ok()
    }

    fn of(value: T) -> Self {
        Ok(value)
    }
}
