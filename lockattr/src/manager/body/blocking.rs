//! A body on the calling thread, followed by the release.

use std::convert::identity;
use std::time::Duration;

use super::{Granted, Start, outcome_for_caller};
use crate::hold::enter::enter;
use crate::lock::options::{Release, ResolvedOptions};
use crate::{Error, LockGuard};

/// Runs `body` under the lock of `start`, releases it, and applies `on_lost`.
///
/// A panic in the body propagates after the guard is dropped.
pub(crate) fn run_blocking<T>(start: Start, body: impl FnOnce() -> T) -> Result<T, Error> {
    run_once_blocking(start, body, |_| false)
}

/// The same; the key is done for the period of the options, if `is_ok` accepts the output.
pub(crate) fn run_once_blocking<T>(
    start: Start,
    body: impl FnOnce() -> T,
    is_ok: fn(&T) -> bool,
) -> Result<T, Error> {
    match start {
        Start::Unlocked => Ok(body()),
        Start::Granted(granted) => run_granted(*granted, body, is_ok),
        Start::Nested(guard, on_lost) => {
            let position = guard.position();
            let output = {
                let _entered = enter(guard.frame(), guard.span())?;
                position.run(body)
            };
            outcome_for_caller(guard.ensure_held(), guard.key(), on_lost).map(|()| output)
        }
    }
}

fn run_granted<T>(
    mut granted: Granted,
    body: impl FnOnce() -> T,
    is_ok: fn(&T) -> bool,
) -> Result<T, Error> {
    let output = loop {
        let position = granted.guard.position();
        let lost = match enter(granted.guard.frame(), granted.guard.span()) {
            Ok(_entered) => break position.run(body),
            Err(lost) => lost,
        };
        match granted.options_for_retry() {
            Some(options) => granted = granted.reacquire_blocking(options, lost)?,
            None => return Err(lost),
        }
    };
    let period = granted.options.once_per.filter(|_| is_ok(&output));
    release(granted.guard, &granted.options, period).map(|()| output)
}

/// Releases the lock; with a period, the key is done until that is over.
fn release(
    guard: LockGuard,
    options: &ResolvedOptions,
    period: Option<Duration>,
) -> Result<(), Error> {
    let key = guard.key().to_owned();
    let watchdog = guard.frame().core().watchdog.clone();
    if let Some(period) = period.filter(|_| !guard.belongs_to_parent()) {
        return watchdog.block_on(&key, guard.release_done(period)).and_then(identity);
    }
    let released = match options.release {
        // Neither a nested call nor a fork of the holder sends a request to the store.
        _ if guard.is_nested() || guard.belongs_to_parent() => guard.ensure_held(),
        Release::Await => watchdog.block_on(&key, guard.release()).and_then(identity),
        Release::Background => {
            watchdog.block_on(&key, guard.release_until_sent()).and_then(identity)
        }
    };
    outcome_for_caller(released, &key, options.on_lost)
}
