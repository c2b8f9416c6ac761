//! The command, its lease and our signals, from its start to its end.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use lockattr::{Error, LockGuard};
use nix::sys::signal::Signal;
use tokio::process::Child;
use tokio::time::{Instant, sleep_until};

use super::foreground::Foreground;
use super::group::{Group, farewell};
use super::signals::Signals;
use crate::failure::{Failure, tell};

/// How it came to an end.
#[derive(Debug)]
pub(super) enum End {
    /// The command ended while it held the lock, as far as is known.
    Exited(ExitStatus),
    /// The lease ended first, and then the group.
    Lost,
}

/// Starts the command and sees it to its end.
pub(super) async fn of(
    guard: &LockGuard,
    mut group: Group,
    mut signals: Signals,
    command: &[OsString],
    variables: [(&'static str, String); 2],
    kill_after: Duration,
) -> Result<End, Failure> {
    let mut suspended = Signals::of(&[Signal::SIGTSTP])?;
    // Before the command is there to read.
    let foreground = Foreground::of(group.id());
    let mut child = match group.spawn(command, variables) {
        Ok(child) => child,
        Err(failure) => {
            group.let_go().await;
            return Err(failure);
        }
    };
    let status = loop {
        tokio::select! {
            biased;
            () = guard.lost() => {
                lost(guard, group, child, kill_after).await;
                return Ok(End::Lost);
            }
            status = child.wait() => break status?,
            signal = signals.next() => group.signal(signal),
            _ = suspended.next() => tell("not suspended: a lease does not wait"),
        }
    };
    match (foreground, status.signal().and_then(|signal| Signal::try_from(signal).ok())) {
        (Some(foreground), Some(signal @ (Signal::SIGINT | Signal::SIGQUIT))) => {
            foreground.pass_on(signal);
        }
        (foreground, _) => drop(foreground),
    }
    if group.let_go().await {
        tell(&format!("the command left processes behind that run on without `{}`", guard.key()));
    }
    Ok(End::Exited(status))
}

/// The whole group ends, at the deadline by force.
async fn lost(guard: &LockGuard, mut group: Group, mut child: Child, kill_after: Duration) {
    let why = match guard.ensure_held() {
        Err(Error::Lost { reason, .. }) => format!(": {reason}"),
        _ => String::new(),
    };
    group.ask_to_end();
    tell(&format!("the lease on `{}` was lost{why}; {}", guard.key(), farewell(kill_after)));
    let deadline = Instant::now() + kill_after;
    tokio::select! {
        biased;
        _ended = child.wait() => {}
        () = sleep_until(deadline) => {
            // With its leash, which has nothing to do any more.
            group.signal(Signal::SIGKILL);
            child.wait().await.ok();
        }
    }
    group.ends_by(deadline).await;
}
