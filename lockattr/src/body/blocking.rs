//! A body on the calling thread, followed by the release.

use std::convert::identity;

use tracing::Span;

use super::judge;
use crate::options::{Release, Terms};
use crate::{Error, LockGuard};

/// Runs `body` under `guard`, gives the lock back, and says what the terms make of a loss.
///
/// A panic in the body goes on, past the guard.
pub(crate) fn run_blocking<T>(
    guard: LockGuard,
    terms: &Terms,
    body: impl FnOnce() -> T,
) -> Result<T, Error> {
    let output = {
        let _inside = guard.span().map(Span::enter);
        guard.place().run(body)
    };
    let key = guard.key().to_owned();
    let watchdog = guard.frame().watchdog.clone();
    let released = match terms.release {
        // A nested call asks no store, and neither does a fork of the process that has the lock.
        _ if guard.is_nested() || guard.is_left_to_parent() => guard.ensure_held(),
        Release::Await => watchdog.block_on(&key, guard.release()).and_then(identity),
        Release::Background => {
            watchdog.block_on(&key, guard.release_in_background()).and_then(identity)
        }
    };
    judge(released, &key, terms.on_lost).map(|()| output)
}

/// Runs `body` without a lock of its own, in the call chain as it is.
pub(crate) fn run_unlocked_blocking<T>(body: impl FnOnce() -> T) -> Result<T, Error> {
    Ok(body())
}
