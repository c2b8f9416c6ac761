//! A body on the calling thread, followed by the release.

use std::convert::identity;
use std::time::Duration;

use super::Start;
use super::state::outcome_for_caller;
use crate::hold::enter::enter;
use crate::lock::options::{Release, ResolvedOptions};
use crate::{Error, LockGuard};

/// Runs `body` under the lock of `start`, releases it, and applies `on_lost`. The key is done for the
/// period of the options, if `is_ok` accepts the output.
///
/// A panic in the body propagates after the guard is dropped.
pub(crate) fn run_blocking<T>(
    start: Start,
    body: impl FnOnce() -> T,
    is_ok: fn(&T) -> bool,
) -> Result<T, Error> {
    let (mut body, mut output) = (Some(body), None);
    let start = run_inside(start, &mut || output = body.take().map(|body| body()))?;
    release_after(start, output.as_ref().is_some_and(is_ok))?;
    Ok(output.expect("the body has run"))
}

/// Runs `body` while the lock is held. If the lease ended before, acquires the lock again.
// Not generic: the compiler would repeat it for each body.
fn run_inside(mut start: Start, body: &mut dyn FnMut()) -> Result<Start, Error> {
    loop {
        let Some((guard, _)) = start.hold() else {
            body();
            return Ok(start);
        };
        let position = guard.position();
        let lost = match enter(guard.frame(), guard.span()) {
            Ok(_entered) => {
                position.run(&mut *body);
                None
            }
            Err(lost) => Some(lost),
        };
        start = match (lost, start) {
            (None, start) => return Ok(start),
            (Some(lost), Start::Granted(granted)) => match granted.options_for_retry() {
                Some(options) => granted.reacquire_blocking(options, lost)?.into(),
                None => return Err(lost),
            },
            (Some(lost), _) => return Err(lost),
        };
    }
}

fn release_after(start: Start, is_done: bool) -> Result<(), Error> {
    match start {
        Start::Unlocked => Ok(()),
        Start::Nested(guard, on_lost) => {
            outcome_for_caller(guard.ensure_held(), guard.key(), on_lost)
        }
        Start::Granted(granted) => {
            let period = granted.options.once_per.filter(|_| is_done);
            release(granted.guard, &granted.options, period)
        }
    }
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
