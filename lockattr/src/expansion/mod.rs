//! What the attribute's expansion calls. Not for use by hand: it changes without notice.

pub(crate) mod assert_held;
mod blocking;
mod lead;
mod once;
pub(crate) mod registry;
mod share;
mod stream;

pub use crate::__private::assert_held::unheld;
pub use crate::__register as register;
pub use crate::__share as share;
pub use crate::manager::body::lease;
use crate::manager::default_manager::{Chosen, default_manager, named_manager};
#[cfg(all(fuzzing, feature = "share"))]
pub use crate::manager::share::read_again;
pub use blocking::{run_blocking, run_once_blocking};
pub use lead::{PerTerm, for_this_term, lead};
pub use once::{Finished, run_once};
#[cfg(feature = "share")]
pub use share::{Shareable, Sharing, enter_sharing};
pub use stream::{
    Either, ItemsOf, RejectedItem, SkippedWithRoom, SkippedWithout, Stream, reject_item, stream,
};

use std::borrow::Cow;
use std::time::Duration;

use tokio::time::Instant;

#[cfg(feature = "registry")]
pub use crate::__private::registry::{ANNOTATED, annotated};
use crate::lock::key::LockKey;
pub use crate::lock::key_template::KeyBuilder;
use crate::lock::options::ResolvedOptions;
use crate::manager::body;
use crate::manager::body::{BodyState, Granted, Run, Start};
use crate::{Error, LockManager, LockOptions};
#[cfg(feature = "registry")]
pub use linkme;
pub use lockattr_macros::assert_held;

/// One call of an annotated function: the options of its attribute, evaluated.
#[derive(Debug)]
pub struct Call {
    /// `None` if a value in it could not be printed.
    key: Option<Cow<'static, str>>,
    others: Vec<Option<Cow<'static, str>>>,
    options: LockOptions,
    manager: Manager,
    locks: bool,
    run_unlocked: bool,
    once_per: Option<Duration>,
}

/// `manager`, as the attribute names it.
#[derive(Debug)]
enum Manager {
    Default,
    Given(LockManager),
    Named(&'static str),
}

impl Manager {
    fn chosen(self) -> Result<Chosen, Error> {
        match self {
            Self::Default => default_manager(),
            Self::Given(manager) => Ok(Chosen::Other(manager)),
            Self::Named(name) => named_manager(name).map(Chosen::Other),
        }
    }
}

impl Call {
    /// A call of `function` that locks `key`.
    pub fn new(function: &'static str, key: KeyBuilder, options: &LockOptions) -> Self {
        Self {
            key: key.finish(),
            others: Vec::new(),
            options: options.clone().function(function),
            manager: Manager::Default,
            locks: true,
            run_unlocked: false,
            once_per: None,
        }
    }

    /// A call of `function` that locks all of `keys`, or none.
    pub fn all<const N: usize>(
        function: &'static str,
        keys: [KeyBuilder; N],
        options: &LockOptions,
    ) -> Self {
        let mut keys = keys.into_iter();
        let first = Self::new(function, keys.next().unwrap_or_default(), options);
        Self { others: keys.map(KeyBuilder::finish).collect(), ..first }
    }

    /// A call that locks nothing, because `when` is false.
    pub fn unlocked() -> Self {
        Self {
            key: None,
            others: Vec::new(),
            options: LockOptions::new(),
            manager: Manager::Default,
            locks: false,
            run_unlocked: false,
            once_per: None,
        }
    }

    /// `manager = expression`.
    pub fn manager(mut self, manager: &LockManager) -> Self {
        self.manager = Manager::Given(manager.clone());
        self
    }

    /// `manager = "name"`.
    pub fn manager_named(mut self, name: &'static str) -> Self {
        self.manager = Manager::Named(name);
        self
    }

    /// `on_unavailable = run_unlocked`.
    pub fn run_unlocked_if_unavailable(mut self) -> Self {
        self.run_unlocked = true;
        self
    }
}

/// The right to run the body, or the acquisition that leads to it.
#[derive(Debug)]
pub struct Entry(BodyState);

impl Call {
    /// Begins to acquire the lock.
    pub fn begin(self) -> Entry {
        Entry(self.begin_or_refuse().unwrap_or_else(BodyState::from))
    }

    /// Acquires the lock.
    // Not an `async fn`, which would keep the call while it waits.
    pub fn enter(self) -> impl Future<Output = Result<Entry, Error>> + Send {
        let begun = self.begin().0;
        async { Ok(Entry(begun.start().await?.into())) }
    }

    fn begin_or_refuse(self) -> Result<BodyState, Error> {
        if !self.locks {
            return Ok(BodyState::default());
        }
        let (manager, run_unlocked) = (self.manager.chosen()?, self.run_unlocked);
        let options = self.options.resolve(manager.settings())?;
        let key = printed(self.key)?;
        let options = once::once(options, self.once_per, &manager, &key)?;
        if let Some(keys) = several(&manager, &key, self.others)? {
            let manager = manager.clone();
            return Ok(BodyState::acquiring(async move {
                entered(start_all(manager, options, keys).await, &key, run_unlocked)
            }));
        }
        let begun = manager.begin(options, &key);
        if !run_unlocked {
            return Ok(begun);
        }
        Ok(BodyState::acquiring(async move { entered(begun.start().await, &key, true) }))
    }
}

/// Acquires the locks of all `keys` for a body.
async fn start_all(
    manager: LockManager,
    options: ResolvedOptions,
    keys: Vec<LockKey>,
) -> Result<Start, Error> {
    let began = Instant::now();
    let guard = manager.acquire_all_on(&options, keys).await?;
    Ok(Granted::new(guard, options, manager, began).into())
}

/// All keys of a call that has more than one.
fn several(
    manager: &LockManager,
    first: &str,
    others: Vec<Option<Cow<'static, str>>>,
) -> Result<Option<Vec<LockKey>>, Error> {
    if others.is_empty() {
        return Ok(None);
    }
    let others = others.into_iter().map(|other| manager.key(&printed(other)?));
    others.chain([manager.key(first)]).collect::<Result<_, _>>().map(Some)
}

/// Applies `on_unavailable` to the outcome of an acquisition.
fn entered(outcome: Result<Start, Error>, key: &str, run_unlocked: bool) -> Result<Start, Error> {
    match outcome {
        Err(error @ Error::Store { .. }) if run_unlocked => {
            tracing::warn!(
                lockattr.key = key, error.message = %error,
                "running without the lock, as `on_unavailable` says"
            );
            Ok(Start::Unlocked)
        }
        outcome => outcome,
    }
}

fn printed(key: Option<Cow<'static, str>>) -> Result<Cow<'static, str>, Error> {
    key.ok_or_else(|| {
        Error::InvalidKey("a value in the key could not be printed: its `Display` failed".into())
    })
}

/// Runs the body and releases the lock.
pub fn run<B: Future>(entry: Entry, body: B, refuse: fn(Error) -> B::Output) -> Run<B> {
    body::run(entry.0, body, refuse)
}

/// Whether `on_busy` applies: another holder has the lock, or the key is done.
pub fn is_busy(error: &Error) -> bool {
    error.is_contended() || error.is_done()
}

/// The return value of a call that was refused.
pub fn reject<R: Rejected>(error: Error) -> R {
    R::rejected(error)
}

/// The same for a type whose name ends as that of a boxed future or stream.
pub fn reject_named<R: RejectedNamed>(error: Error) -> R {
    R::rejected_named(error)
}

/// The return value of a call that was skipped.
pub fn skip<R: Skipped>(error: Error) -> R {
    R::skipped(error)
}

/// Return types that can express a refusal.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no room for a lock error",
    label = "return a `Result<_, E>` with `E: From<lockattr::Error>`",
    note = "an annotated function has to say that it was not run: return `Result<_, E>`, and write \
            `impl From<lockattr::Error> for E` where `E` is a type of your own",
    note = "or write `on_busy = skip` on a function that returns `()`, `Option<T>` or \
            `Result<Option<T>, E>`"
)]
pub trait Rejected {
    /// The refusal as a value.
    fn rejected(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<Error>> Rejected for Result<T, E> {
    fn rejected(error: Error) -> Self {
        Err(error.into())
    }
}

/// Return types that can express a refusal, under a name that may be an alias: with another message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no room for a lock error",
    label = "for a boxed future or stream, write `Pin<Box<dyn Future<Output = …>>>`, `BoxFuture`, \
             `Pin<Box<dyn Stream<Item = …>>>` or `BoxStream`; for any other value, return a \
             `Result<_, E>`",
    note = "the attribute sees only how a type is written: of the aliases of a boxed future or stream, \
            it knows `BoxFuture`, `LocalBoxFuture`, `BoxStream` and `LocalBoxStream`, and takes every \
            other name for a value, which is made under the lock but does not run under it"
)]
pub trait RejectedNamed {
    /// The refusal as a value.
    fn rejected_named(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<R: Rejected> RejectedNamed for R {
    fn rejected_named(error: Error) -> Self {
        R::rejected(error)
    }
}

/// Return types that can express "not run".
#[diagnostic::on_unimplemented(
    message = "`on_busy = skip` cannot make a `{Self}` of a call that was skipped",
    label = "return `()`, `Option<T>`, or `Result<Option<T>, E>` with `E: From<lockattr::Error>`",
    note = "a skipped call yields `()`, `None` or `Ok(None)`; in a `Result`, any other \
            refusal becomes an `E`"
)]
pub trait Skipped {
    /// "Not run" as a value: nothing if the lock was busy. If it was refused for another reason
    /// that the type cannot express, also emits an error event.
    fn skipped(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl Skipped for () {
    fn skipped(error: Error) {
        report(&error);
    }
}

#[diagnostic::do_not_recommend]
impl<T> Skipped for Option<T> {
    fn skipped(error: Error) -> Self {
        report(&error);
        None
    }
}

#[diagnostic::do_not_recommend]
impl<T, E: From<Error>> Skipped for Result<Option<T>, E> {
    fn skipped(error: Error) -> Self {
        if is_busy(&error) { Ok(None) } else { Err(error.into()) }
    }
}

fn report(error: &Error) {
    if !is_busy(error) {
        tracing::error!(error.message = %error, "skipped, because the lock was refused");
    }
}
