//! The process beside the command: it ends the command's group if `lockattr run` is killed.
//!
//! However `lockattr run` ends, the system closes its end of our stdin. That needs only pipes and
//! groups, and covers grandchildren, which a parent-death signal does not.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpgrp, getpid};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::POLL_INTERVAL;
use super::reach::{OF_TERMINALS, Reach};
use super::signals::Signals;
use crate::failure::{Failure, report};
use crate::{exit, span};

/// Leads the group that the command is put into, so that it knows the group from the start.
#[derive(Debug, Args)]
pub(crate) struct Leash {
    /// The time from SIGTERM to SIGKILL
    #[arg(long, value_parser = span::parse)]
    kill_after: Duration,
}

impl Leash {
    pub(crate) async fn execute(self) -> Result<u8, Failure> {
        if getpgrp() != getpid() {
            let message = "`leash` is only for `lockattr run`, which gives it its own process \
                 group";
            return Err(Failure::new(exit::ERROR, message));
        }
        // Survives every signal to the group except SIGKILL.
        let mut signals = Signals::new()?;
        let mut suspended = Signals::of(&[Signal::SIGTSTP])?;
        // Reports that the command can be started now.
        std::io::stdout().write_all(b".")?;
        std::io::stdout().flush()?;
        let (mut commands, mut reach) = (started_commands(), Reach::of(getpgrp()));
        // Signals that arrived before the command's process ID did.
        let mut early = Some(Vec::new());
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => {
                        reach.set_command(command);
                        early.take().into_iter().flatten().for_each(|signal| reach.relay(signal));
                    }
                    None => break,
                },
                signal = signals.next() => {
                    if OF_TERMINALS.contains(&signal) {
                        reach.relay(signal);
                        early.iter_mut().for_each(|early| early.push(signal));
                    }
                }
                _ = suspended.next() => {
                    report("not suspended: the command holds a lock, and its lease would expire");
                    reach.signal(Signal::SIGCONT);
                }
            }
        }
        report("`lockattr run` was killed: ending its command as well");
        reach.terminate();
        let deadline = Instant::now() + self.kill_after;
        while Instant::now() < deadline {
            sleep(POLL_INTERVAL.min(deadline - Instant::now())).await;
            // The command's parent is gone: another process reaps it, and its ID may be reused.
            reach.forget_if_ended();
        }
        // This includes the leash itself.
        reach.signal(Signal::SIGKILL);
        Ok(exit::OK)
    }
}

/// Receives the command's process ID from `lockattr run`, which sends nothing else. If it is killed
/// right after it started the command, before it sends the ID, only the group is known.
fn started_commands() -> mpsc::Receiver<Pid> {
    let (sender, commands) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut stdin = tokio::io::stdin();
        while let Ok(pid) = stdin.read_i32().await {
            sender.send(Pid::from_raw(pid)).await.ok();
        }
    });
    commands
}
