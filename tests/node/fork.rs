//! `node fork url=… [how=threads]`: makes a manager, holds `held`, forks, and lets the child try
//! what must fail there. Both print their results to stdout; then the parent waits for the end of
//! its stdin. It forks outside any runtime, as a program should.
//!
//! | how | where it forks |
//! |---|---|
//! | `threads` | on a waiting thread, beside the manager's own |
//! | `body` | the same, inside a body under the lock |
//! | `runtime` | in a task: the child drives its copy of the runtime |

#![expect(
    clippy::disallowed_methods,
    reason = "a fork exits at once, and its exit is timed on a thread without a runtime"
)]

use std::error::Error;
use std::io::{Write, stdin, stdout};
use std::process::exit;
use std::thread;
use std::time::Duration;

use fork::{Fork, fork, waitpid};
use lockattr::{LockGuard, LockManager, LockOptions};
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::arguments::Arguments;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let url: String = arguments.get_or("url", String::new())?;
    match arguments.get_or("how", "threads".to_owned())?.as_str() {
        "threads" => threads(&url),
        "body" => body(&url),
        "runtime" => {
            Builder::new_current_thread().enable_all().build()?.block_on(in_a_runtime(&url))
        }
        how => Err(format!("no way to fork `{how}`").into()),
    }
}

fn threads(url: &str) -> Outcome {
    let manager = LockManager::connect_blocking(url)?;
    manager.install()?;
    manager.install_as("named")?;
    let guard = manager.acquire_blocking("held", LockOptions::new())?;
    if !is_parent()? {
        let ended = copy_of_threads(url, manager, guard);
        say(&format!("copy ended: {ended:?}"))?;
        exit(0);
    }
    // Made after the child's: the two processes must not draw the same random numbers.
    let other = LockManager::connect_blocking(url)?;
    std::mem::forget(other.acquire_blocking("parents", LockOptions::new())?);
    say(&format!("parent holds: {:?}", guard.ensure_held()))?;
    stdin().read_line(&mut String::new())?;
    guard.release_blocking()?;
    manager.shutdown_blocking()?;
    say("parent released")
}

fn copy_of_threads(url: &str, manager: LockManager, guard: LockGuard) -> Outcome {
    say(&format!("copy holds: {:?}", guard.ensure_held()))?;
    let acquired = manager.acquire_blocking("other", LockOptions::new());
    say(&format!("copy acquires: {acquired:?}"))?;
    let nested = guard.scope_blocking(|| manager.acquire_blocking("held", LockOptions::new()));
    say(&format!("copy nests: {nested:?}"))?;
    say(&format!("copy asks: {:?}", manager.holder_blocking("held")))?;
    say(&format!("copy shuts down: {:?}", manager.shutdown_blocking()))?;
    drop((acquired, nested));
    say(&format!("copy releases: {:?}", guard.release_blocking()))?;
    drop(manager);
    let own = LockManager::connect_blocking(url)?;
    own.install()?;
    own.install_as("named")?;
    let again = own.install().is_err() && own.install_as("named").is_err();
    say(&format!("copy installs once: {again}"))?;
    let held = own.try_acquire_blocking("held", LockOptions::new())?;
    say(&format!("copy finds it free: {}", held.is_some()))?;
    // Stays in the store for the test's check.
    std::mem::forget(own.acquire_blocking("copys", LockOptions::new())?);
    Ok(())
}

fn body(url: &str) -> Outcome {
    let manager = LockManager::connect_blocking(url)?;
    let mut here = Ok(true);
    let done = manager.with_lock_blocking("held", LockOptions::new(), |_| here = is_parent());
    if !here? {
        say(&format!("copy ended: {done:?}"))?;
        exit(0);
    }
    say(&format!("parent ended: {done:?}"))?;
    manager.shutdown_blocking()?;
    Ok(())
}

async fn in_a_runtime(url: &str) -> Outcome {
    let manager = LockManager::connect(url).await?;
    let guard = manager.acquire("held", LockOptions::new()).await?;
    let mut watch = manager.watch_leader("held")?;
    let waits = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire("held", LockOptions::new()).await }
    });
    sleep(Duration::from_millis(50)).await;
    if !is_parent()? {
        let acquired = manager.acquire("other", LockOptions::new()).await;
        say(&format!("copy acquires: {acquired:?}"))?;
        say(&format!("copy watches: {:?}", watch.changed().await))?;
        let led = manager.lead("led", LockOptions::new(), async |_term| ()).await;
        say(&format!("copy leads: {led:?}"))?;
        drop((acquired, guard));
        // Time for the copies of all tasks to run.
        sleep(Duration::from_millis(300)).await;
        say(&format!("copy waited: {}", waits.is_finished()))?;
        exit(0);
    }
    say(&format!("parent holds: {:?}", guard.ensure_held()))?;
    guard.release().await?;
    waits.await??.release().await?;
    manager.shutdown().await;
    say("parent released")
}

/// Forks; the parent continues when its child has ended, and the child waits for a limited time.
fn is_parent() -> Outcome<bool> {
    match fork()? {
        Fork::Parent(copy) => {
            waitpid(copy)?;
            Ok(true)
        }
        Fork::Child => {
            drop(thread::spawn(|| {
                thread::sleep(Duration::from_secs(10));
                drop(say("copy hangs"));
                exit(1);
            }));
            Ok(false)
        }
    }
}

fn say(line: &str) -> Outcome {
    let mut stdout = stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}
