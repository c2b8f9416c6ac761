//! A function that runs once in a period: what its attribute says, and which return values count.

use std::time::Duration;

use super::{Call, Entry};
use crate::lock::key_template::KeyBuilder;
use crate::lock::options::{LONGEST_PERIOD, ResolvedOptions};
use crate::manager::body::{self, Run};
use crate::{Error, LockManager};

impl Call {
    /// `once_per`.
    pub fn once_per(mut self, period: Duration) -> Self {
        self.once_per = Some(period);
        self
    }

    /// `once_for`: the key is done for this value, and longer than any process asks for it.
    pub fn once_for(mut self, value: KeyBuilder) -> Self {
        self.key = self.key.zip(value.finish()).map(|(key, value)| format!("{key}:{value}").into());
        self.once_per.get_or_insert(LONGEST_PERIOD);
        self
    }
}

/// Adds the period of a call to its options, and refuses what could never be done.
pub(super) fn once(
    options: ResolvedOptions,
    period: Option<Duration>,
    manager: &LockManager,
    key: &str,
) -> Result<ResolvedOptions, Error> {
    let Some(period) = period else { return Ok(options) };
    manager.check_once(key)?;
    options.once_per(period, manager.settings())
}

/// Runs the body and releases the lock; after a body that ended `Ok`, the key is done.
pub fn run_once<B: Future<Output: Finished>>(
    entry: Entry,
    body: B,
    refuse: fn(Error) -> B::Output,
) -> Run<B> {
    body::run_once(entry.0, body, refuse, Finished::is_ok)
}

/// Return types of functions that run once in a period.
#[diagnostic::on_unimplemented(
    message = "`once_per` cannot tell from a `{Self}` whether the work is done",
    label = "return a `Result<_, E>`: after `Ok`, the key is done",
    note = "a function that returns `()` or an `Option` has done its work when it returns"
)]
pub trait Finished {
    /// Whether the work is done.
    fn is_ok(&self) -> bool;
}

#[diagnostic::do_not_recommend]
impl<T, E> Finished for Result<T, E> {
    fn is_ok(&self) -> bool {
        self.is_ok()
    }
}

#[diagnostic::do_not_recommend]
impl Finished for () {
    fn is_ok(&self) -> bool {
        true
    }
}

#[diagnostic::do_not_recommend]
impl<T> Finished for Option<T> {
    fn is_ok(&self) -> bool {
        true
    }
}
