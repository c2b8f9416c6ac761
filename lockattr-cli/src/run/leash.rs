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

use super::LOOK;
use super::reach::{OF_TERMINALS, Reach};
use super::signals::Signals;
use crate::failure::{Failure, tell};
use crate::{exit, span};

/// Leads the group that the command is put into, so that there is no moment in which it does not know
/// it.
#[derive(Debug, Args)]
pub(crate) struct Leash {
    /// From SIGTERM to SIGKILL
    #[arg(long, value_parser = span::parse)]
    kill_after: Duration,
}

impl Leash {
    pub(crate) async fn execute(self) -> Result<u8, Failure> {
        if getpgrp() != getpid() {
            let sentence = "`leash` is for `lockattr run`, which gives it a group of its own";
            return Err(Failure::new(exit::ERROR, sentence));
        }
        // Survives every signal to the group except SIGKILL.
        let mut meant_for_the_command = Signals::new()?;
        let mut suspended = Signals::of(&[Signal::SIGTSTP])?;
        // Reports that the command can be started now.
        std::io::stdout().write_all(b".")?;
        std::io::stdout().flush()?;
        let (mut told, mut reach) = (told(), Reach::of(getpgrp()));
        // Signals that arrived before the command's process ID did.
        let mut early = Some(Vec::new());
        loop {
            tokio::select! {
                command = told.recv() => match command {
                    Some(command) => {
                        reach.is_for(command);
                        early.take().into_iter().flatten().for_each(|signal| reach.relay(signal));
                    }
                    None => break,
                },
                signal = meant_for_the_command.next() => {
                    if OF_TERMINALS.contains(&signal) {
                        reach.relay(signal);
                        early.iter_mut().for_each(|early| early.push(signal));
                    }
                }
                _ = suspended.next() => {
                    tell("not suspended: the command holds a lock, and its lease does not wait");
                    reach.signal(Signal::SIGCONT);
                }
            }
        }
        tell("`lockattr run` is gone: its command is ended as well");
        reach.ask_to_end();
        let deadline = Instant::now() + self.kill_after;
        while Instant::now() < deadline {
            sleep(LOOK.min(deadline - Instant::now())).await;
            // The command's parent is gone: another process reaps it, and its number may be reused.
            reach.forget_the_ended();
        }
        // This includes the leash itself.
        reach.signal(Signal::SIGKILL);
        Ok(exit::OK)
    }
}

/// Receives the command's process ID from `lockattr run`, which sends nothing else. If it is killed
/// right after it started the command, before it sends the ID, only the group is known.
fn told() -> mpsc::Receiver<Pid> {
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut stdin = tokio::io::stdin();
        while let Ok(number) = stdin.read_i32().await {
            tell.send(Pid::from_raw(number)).await.ok();
        }
    });
    told
}
