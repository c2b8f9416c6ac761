//! The command, its lease and our signals, from its start to its end.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use lockattr::{Error, LockGuard};
use nix::sys::signal::Signal;
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use super::POLL_INTERVAL;
use super::foreground::{self, Foreground};
use super::group::{Group, Variable, kill_notice};
use super::signals::Signals;
use crate::failure::{Failure, report};

/// The longest wait after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) enum End {
    /// The command ended while it held the lock, as far as is known.
    Exited(ExitStatus),
    /// The lease ended first, and then the group, if there was one.
    Lost,
}

/// Starts the command and waits for its end.
pub(super) async fn of(
    guard: &LockGuard,
    mut group: Group,
    signals: &mut Signals,
    command: &[OsString],
    variables: Vec<Variable>,
    kill_after: Duration,
) -> Result<End, Failure> {
    let mut relay = SignalRelay { signals, suspended: Signals::of(&[Signal::SIGTSTP])? };
    // Before the command exists and may read.
    let foreground = Foreground::of(group.id());
    // This process may have been stopped since the grant, without a renewal.
    if let Some(reason) = lost(guard) {
        group.remove_leash().await;
        report(&format!("{reason}; the command was not started"));
        return Ok(End::Lost);
    }
    let place = foreground::place(foreground.as_ref());
    let mut child = match group.spawn(command, variables, place).await {
        Ok(child) => child,
        Err(failure) => {
            group.remove_leash().await;
            return Err(failure);
        }
    };
    let status = loop {
        tokio::select! {
            biased;
            () = guard.lost() => {
                let reason = lost(guard).unwrap_or_default();
                group.reach().terminate();
                report(&format!("{reason}; {}", kill_notice(kill_after)));
                if !end(&mut group, &mut child, &mut relay, Instant::now() + kill_after).await {
                    report(&format!("SIGKILL did not end all processes: some continue without the \
                         lock on `{}`", guard.key()));
                }
                return Ok(End::Lost);
            }
            status = child.wait() => break status?,
            () = relay.relay_next(&group) => {}
        }
    };
    match (foreground, status.signal().and_then(|signal| Signal::try_from(signal).ok())) {
        (Some(foreground), Some(signal @ (Signal::SIGINT | Signal::SIGQUIT))) => {
            foreground.pass_on(signal);
        }
        (foreground, _) => drop(foreground),
    }
    if group.remove_leash().await {
        report(&format!(
            "the command left processes behind, which continue without the lock on \
             `{}`",
            guard.key()
        ));
    }
    Ok(End::Exited(status))
}

fn lost(guard: &LockGuard) -> Option<String> {
    let lost = |reason: &str| format!("the lease on `{}` was lost{reason}", guard.key());
    match guard.ensure_held() {
        Ok(()) => None,
        Err(Error::Lost { reason, .. }) => Some(lost(&format!(": {reason}"))),
        Err(_) => Some(lost("")),
    }
}

/// Waits until all processes have ended, and kills them at the deadline. Returns whether they have
/// ended.
async fn end(
    group: &mut Group,
    command: &mut Child,
    relay: &mut SignalRelay<'_>,
    mut deadline: Instant,
) -> bool {
    let mut killed = false;
    while !group.has_ended(command).await {
        let now = Instant::now();
        if now >= deadline {
            if killed {
                return false;
            }
            // The leash as well, which is no longer needed.
            group.reach().signal(Signal::SIGKILL);
            (killed, deadline) = (true, now + KILL_TIMEOUT);
        }
        tokio::select! {
            biased;
            () = relay.relay_next(group) => {}
            () = sleep(POLL_INTERVAL.min(deadline - now)) => {}
        }
    }
    true
}

/// The signals that this process receives while the command runs.
struct SignalRelay<'a> {
    signals: &'a mut Signals,
    suspended: Signals,
}

impl SignalRelay<'_> {
    /// Waits for one signal, and passes it on.
    async fn relay_next(&mut self, group: &Group) {
        tokio::select! {
            signal = self.signals.next() => group.reach().pass_on(signal),
            _ = self.suspended.next() => report("not suspended: the lease would expire"),
        }
    }
}
