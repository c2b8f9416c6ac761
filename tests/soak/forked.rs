//! A process that forks while it holds a lock: `soak fork url=… key=…`.
//!
//! The child tries what must fail there. Both print a line for each error, and at the end the
//! parent prints `over`. The process forks outside any runtime, as a program should.

#![expect(
    clippy::disallowed_methods,
    reason = "a fork exits at once, and its exit is timed on a thread without a runtime"
)]

use std::collections::BTreeMap;
use std::process::exit;
use std::thread;
use std::time::Duration;

use fork::{Fork, fork, waitpid};
use lockattr::{Error, LockGuard, LockManager, LockOptions};

use crate::worker::{say, value};

/// The last line of the parent.
pub(crate) const OVER: &str = "over";

/// How long the child waits for its parent's lock.
const SOON: Duration = Duration::from_secs(2);

/// A child that takes longer hangs.
const CHILD_LIMIT: Duration = Duration::from_secs(20);

/// Runs the process.
///
/// # Errors
///
/// Arguments that make no sense, or a failure before the fork.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let arguments: BTreeMap<&str, &str> =
        words.iter().filter_map(|word| word.split_once('=')).collect();
    let (url, key): (String, String) = (value(&arguments, "url")?, value(&arguments, "key")?);
    let failed = |error: Error| error.to_string();
    let manager = LockManager::connect_blocking(&url).map_err(failed)?;
    let held = manager.acquire_blocking(key.as_str(), LockOptions::new()).map_err(failed)?;
    match fork().map_err(|error| error.to_string())? {
        Fork::Child => {
            exit_if_hung();
            report("copy", check_child(&url, &key, &manager, held));
            exit(0);
        }
        Fork::Parent(copy) => {
            waitpid(copy).map_err(|error| error.to_string())?;
        }
    }
    report("parent", check_parent(&key, &manager, held));
    say(OVER);
    Ok(())
}

/// The child holds nothing of its parent's, and can lock with its own manager.
fn check_child(url: &str, key: &str, parents: &LockManager, held: LockGuard) -> Result<(), String> {
    ensure(
        matches!(held.ensure_held(), Err(Error::Lost { .. })),
        "it holds what its parent holds",
    )?;
    let announce = parents.acquire_blocking(format!("{key}:copy"), LockOptions::new());
    ensure(matches!(announce, Err(Error::InvalidOptions(_))), "its parent's manager serves it")?;
    ensure(held.release_blocking().is_err(), "it releases what its parent holds")?;
    let failed = |error: Error| error.to_string();
    let own = match LockManager::builder().url(url).build() {
        // Its client has a thread, which exists only in the parent.
        Err(Error::InvalidOptions(_)) if url.starts_with("zookeeper:") => return Ok(()),
        own => own.map_err(failed)?,
    };
    match own.acquire_blocking(key, LockOptions::new().wait(SOON)) {
        Err(Error::Contended { .. }) => {}
        Err(error) => return Err(failed(error)),
        Ok(_) => ensure(false, "the lock is free for it")?,
    }
    let other = own.acquire_blocking(format!("{key}:copy"), LockOptions::new()).map_err(failed)?;
    other.ensure_held().map_err(failed)?;
    other.release_blocking().map_err(failed)
}

/// The parent still holds its locks.
fn check_parent(key: &str, manager: &LockManager, held: LockGuard) -> Result<(), String> {
    let failed = |error: Error| error.to_string();
    held.ensure_held().map_err(failed)?;
    let other = manager.acquire_blocking(format!("{key}:parent"), LockOptions::new());
    other.map_err(failed)?.release_blocking().map_err(failed)?;
    held.release_blocking().map_err(failed)?;
    manager.shutdown_blocking().map(drop).map_err(failed)
}

fn ensure(so: bool, else_wrong: &str) -> Result<(), String> {
    if so { Ok(()) } else { Err(else_wrong.to_owned()) }
}

fn report(name: &str, found: Result<(), String>) {
    if let Err(wrong) = found {
        say(&format!("{name}: {wrong}"));
    }
}

/// Only the forking thread exists in the child.
fn exit_if_hung() {
    drop(thread::spawn(|| {
        thread::sleep(CHILD_LIMIT);
        say("copy: it hangs");
        exit(1);
    }));
}
